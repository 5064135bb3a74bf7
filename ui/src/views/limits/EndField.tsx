import { Field } from "../../components/Field";
import { Select } from "../../components/Select";
import { formatDate } from "../../format/times";
import { storeNow } from "../../state/clock";
import { zone } from "../../state/prefs";
import { offsetAt } from "../schedules/clocks";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export interface End {
  choice: "1h" | "4h" | "24h" | "morning" | "time" | "never" | "";
  /** For `time`, as the field gives it: "2026-11-18T09:00", on the page's clocks. */
  time: string;
}

/** A time that clocks of the page show, as a moment. */
function momentOf(local: string): number | null {
  const asUtc = Date.parse(`${local}Z`);
  if (!Number.isFinite(asUtc)) return null;
  const guess = asUtc - offsetAt(asUtc, zone.value);
  return asUtc - offsetAt(guess, zone.value);
}

/** Nine o'clock of the next day that works. */
function nextMorning(now: number): number {
  const local = new Date(now + offsetAt(now, zone.value));
  const today = Date.UTC(local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate(), 9);
  let next = local.getTime() < today ? today : today + DAY;
  while ([0, 6].includes(new Date(next).getUTCDay())) next += DAY;
  return momentOf(new Date(next).toISOString().slice(0, 16)) ?? now + DAY;
}

/** The end as a moment; null for none. */
export function endOf(end: End): number | null {
  const now = storeNow();
  if (end.choice === "1h") return now + HOUR;
  if (end.choice === "4h") return now + 4 * HOUR;
  if (end.choice === "24h") return now + DAY;
  if (end.choice === "morning") return nextMorning(now);
  return end.choice === "time" ? momentOf(end.time) : null;
}

/** Why the end will not do yet. */
export function endMistake(end: End): string | null {
  if (end.choice === "") return "Choose an end first.";
  if (end.choice !== "time") return null;
  const at = momentOf(end.time);
  if (at === null) return "Give the time of its end.";
  return at <= storeNow() ? "The end must be ahead." : null;
}

/** What is offered first where a stop may last: long enough to look into it, and over if it is forgotten. */
export const SOON: End = { choice: "1h", time: "" };

/** For the API; null until somebody lifts it. */
export function untilOf(end: End): string | null {
  const at = endOf(end);
  return at === null ? null : new Date(at).toISOString();
}

const CHOICES: readonly { value: End["choice"]; label: string }[] = [
  { value: "1h", label: "in 1 hour" },
  { value: "4h", label: "in 4 hours" },
  { value: "24h", label: "in 24 hours" },
  { value: "morning", label: "on the next working day at 09:00" },
  { value: "time", label: "at a time…" },
];

interface EndFieldProps {
  value: End;
  onChange: (value: End) => void;
  /** How long it lasts if it does not end by itself: "off until somebody switches it on". Without it, it must end. */
  without?: string;
}

/** When a stop ends by itself: what nobody remembers must not last. */
export function EndField({ value, onChange, without }: EndFieldProps) {
  const at = endOf(value);
  const offered = without ? [...CHOICES, { value: "never" as const, label: `not by itself: ${without}` }] : CHOICES;
  const options = value.choice === "" ? [{ value: "" as const, label: "choose…" }, ...offered] : offered;
  const hint = at !== null ? `${formatDate(at, zone.value, storeNow())}, ${zone.value}` : value.choice === "never" ? "It lasts until somebody remembers it." : undefined;
  return (
    <>
      <Select label="It ends" options={options} value={value.choice} onChange={(choice) => onChange({ ...value, choice })} {...(hint ? { hint } : {})} />
      {value.choice === "time" && <Field label="Time of the end" type="datetime-local" value={value.time} onInput={(time) => onChange({ ...value, time })} error={value.time ? endMistake(value) : null} />}
    </>
  );
}
