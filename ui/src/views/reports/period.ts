/** Which time a report is about, as the address says it. */

export type Preset = "24h" | "7d" | "30d" | "90d" | "custom";

const HOURS: Readonly<Record<Exclude<Preset, "custom">, number>> = { "24h": 24, "7d": 168, "30d": 720, "90d": 2160 };

export const PRESETS: readonly { value: Preset; label: string }[] = [
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: "90d", label: "Last 90 days" },
  { value: "custom", label: "From … to …" },
];

export interface Period {
  preset: Preset;
  /** In milliseconds. */
  since: number;
  until: number;
}

export function presetOf(since: string): Preset {
  return since in HOURS ? (since as Preset) : since === "" ? "7d" : "custom";
}

/** `since` is a preset or a moment in UTC; `until` a moment, or empty for now. What cannot be read falls back to a week. */
export function periodOf(since: string, until: string, now: number): Period {
  const preset = presetOf(since);
  if (preset !== "custom") return { preset, since: now - HOURS[preset] * 3_600_000, until: now };
  const from = Date.parse(since);
  const to = until === "" ? now : Date.parse(until);
  if (!Number.isFinite(from) || !Number.isFinite(to) || from >= to) return { preset, since: now - HOURS["7d"] * 3_600_000, until: now };
  return { preset, since: from, until: Math.min(to, now) };
}

/** As long, and just before. */
export function before(period: Period): Period {
  return { preset: "custom", since: period.since - (period.until - period.since), until: period.since };
}

export function toText(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, "Z");
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

/** A moment as a field for date and time shows it, in the zone of the page. */
export function toField(at: number, isUtc: boolean): string {
  const date = new Date(at);
  if (isUtc) return date.toISOString().slice(0, 16);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/** The moment that such a field means; null while it is not whole. */
export function fromField(text: string, isUtc: boolean): number | null {
  const at = Date.parse(isUtc ? `${text}Z` : text);
  return Number.isFinite(at) ? at : null;
}
