import { formatSpan } from "./durations";

/** What the API sends for a moment: an ISO text or milliseconds since the epoch. */
export type Moment = string | number;

const DAY_MS = 86_400_000;

export function toMillis(at: Moment): number {
  return typeof at === "number" ? at : Date.parse(at);
}

export interface Clock {
  year: string;
  month: string;
  day: string;
  weekday: string;
  hour: string;
  minute: string;
  second: string;
}

const formatters = new Map<string, Intl.DateTimeFormat>();

function cached(key: string, make: () => Intl.DateTimeFormat): Intl.DateTimeFormat {
  const known = formatters.get(key);
  if (known) return known;
  const made = make();
  formatters.set(key, made);
  return made;
}

/** The parts of a moment on the clock of a zone. */
export function clockParts(at: number, zone: string): Clock {
  const formatter = cached(`parts ${zone}`, () =>
    new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hourCycle: "h23",
      weekday: "short",
      year: "numeric",
      month: "short",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    }),
  );
  const parts: Record<string, string> = {};
  for (const part of formatter.formatToParts(at)) parts[part.type] = part.value;
  // Some data says "Sept", a month of four letters; columns want three.
  return { ...(parts as unknown as Clock), month: (parts.month ?? "").slice(0, 3) };
}

const ZONE_LOCALES = ["en-GB", "en-US", "en-AU", "en-CA", "en-IN", "en-NZ", "en-ZA"];

/** "CEST" where any English has a short name for it, else the offset ("UTC+5:45"). */
export function zoneAbbreviation(at: number, zone: string): string {
  if (zone === "UTC") return "UTC";
  let fallback = "";
  for (const locale of ZONE_LOCALES) {
    const formatter = cached(`${locale} ${zone}`, () => new Intl.DateTimeFormat(locale, { timeZone: zone, timeZoneName: "short" }));
    const name = formatter.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "";
    if (name && !/^(GMT|UTC)[+-]/.test(name)) return name;
    fallback ||= name;
  }
  return fallback.replace("GMT", "UTC") || "UTC";
}

/** "03:12:40". */
export function formatClock(at: number, zone: string): string {
  const clock = clockParts(at, zone);
  return `${clock.hour}:${clock.minute}:${clock.second}`;
}

/** "03:12". */
export function formatMinute(at: number, zone: string): string {
  return formatClock(at, zone).slice(0, 5);
}

/** "03:12:40.123". */
export function formatClockMillis(at: number, zone: string): string {
  const millis = ((Math.floor(at) % 1000) + 1000) % 1000;
  return `${formatClock(at, zone)}.${String(millis).padStart(3, "0")}`;
}

/** "Sun 25 Oct". */
export function formatDay(at: number, zone: string): string {
  const clock = clockParts(at, zone);
  return `${clock.weekday} ${clock.day} ${clock.month}`;
}

/** "Sun 25 Oct 02:00"; another year than now's is named. */
export function formatDate(at: number, zone: string, now: number): string {
  const clock = clockParts(at, zone);
  const year = clock.year === clockParts(now, zone).year ? "" : ` ${clock.year}`;
  return `${clock.weekday} ${clock.day} ${clock.month}${year} ${clock.hour}:${clock.minute}`;
}

/** The whole truth about a moment: its day, clock and zone, and the same in UTC. */
export function formatExact(at: number, zone: string): string {
  const clock = clockParts(at, zone);
  const local = `${clock.weekday} ${clock.day} ${clock.month} ${clock.year}, ${formatClockMillis(at, zone)} ${zoneAbbreviation(at, zone)}`;
  if (zone === "UTC") return local;
  const utc = clockParts(at, "UTC");
  const day = utc.day === clock.day ? "" : `${utc.weekday} ${utc.day} ${utc.month}, `;
  return `${local} · ${day}${formatClockMillis(at, "UTC")} UTC`;
}

/** "6 min ago", "in 2 min 20 s" within a day; the date beyond. */
export function formatRelative(at: number, now: number, zone: string): string {
  const seconds = (now - at) / 1000;
  if (Math.abs(seconds) * 1000 >= DAY_MS) return formatDate(at, zone, now);
  return seconds >= 0 ? `${formatSpan(seconds)} ago` : `in ${formatSpan(-seconds)}`;
}

/** As `formatRelative`, without "ago": for columns whose head says what is meant. */
export function formatAge(at: number, now: number, zone: string): string {
  const seconds = (now - at) / 1000;
  if (Math.abs(seconds) * 1000 >= DAY_MS) return formatDate(at, zone, now);
  return seconds >= 0 ? formatSpan(seconds) : `in ${formatSpan(-seconds)}`;
}

/** "03:12" within a day of now, else "Fri 22:10" within a week, else "12 Oct". */
export function formatNear(at: number, now: number, zone: string): string {
  const apart = Math.abs(now - at);
  const clock = clockParts(at, zone);
  if (apart < DAY_MS && clock.day === clockParts(now, zone).day) return `${clock.hour}:${clock.minute}`;
  if (apart < 7 * DAY_MS) return `${clock.weekday} ${clock.hour}:${clock.minute}`;
  return `${clock.day} ${clock.month}`;
}
