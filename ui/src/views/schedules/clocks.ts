import { clockParts } from "../../format/times";

const MINUTE = 60_000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** How far the clocks of a zone are ahead of UTC at a moment, in milliseconds. */
export function offsetAt(at: number, zone: string): number {
  const clock = clockParts(at, zone);
  const shown = Date.UTC(Number(clock.year), MONTHS.indexOf(clock.month), Number(clock.day), Number(clock.hour), Number(clock.minute), Number(clock.second));
  return shown - Math.floor(at / 1000) * 1000;
}

/** The first moment after `from` at which the clocks of a zone are set, if it comes before `to`. */
export function clockChange(from: number, to: number, zone: string): number | null {
  const before = offsetAt(from, zone);
  if (offsetAt(to, zone) === before) return null;
  let low = from;
  let high = to;
  while (high - low > MINUTE) {
    const middle = low + Math.floor((high - low) / 2);
    if (offsetAt(middle, zone) === before) low = middle;
    else high = middle;
  }
  return Math.floor(high / MINUTE) * MINUTE;
}

/** "Clocks go back on Sunday at 03:00.", or nothing. The time is the one that clocks show just before. */
export function clockChangeText(from: number, to: number, zone: string): string {
  const change = clockChange(from, to, zone);
  if (change === null) return "";
  const before = offsetAt(from, zone);
  const wall = new Date(change + before);
  const direction = offsetAt(to, zone) < before ? "back" : "forward";
  return `Clocks go ${direction} on ${WEEKDAYS[wall.getUTCDay()]} at ${wall.toISOString().slice(11, 16)}.`;
}

/**
 * True for a line that names fixed times, each of which happens once when clocks are set. Others follow real time:
 * their minute or hour begins with `*`.
 */
export function isFixedLine(cron: string): boolean {
  const fields = cron.trim().replace(/^(CRON_)?TZ=\S+\s+/, "").split(/\s+/);
  if (fields[0]?.startsWith("@")) return fields[0] !== "@hourly" && fields[0] !== "@every";
  const [minute = "*", hour = "*"] = fields.length > 5 ? fields.slice(1) : fields;
  return !/^[*?]/.test(minute) && !/^[*?]/.test(hour);
}
