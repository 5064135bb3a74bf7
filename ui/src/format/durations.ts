import { formatCount } from "./numbers";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

export interface Measure {
  figure: string;
  unit: string;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

/** 0.52, 9.1, 0.021: two significant figures, and never an exponent. */
function twoFigures(value: number): string {
  const size = Math.floor(Math.log10(value));
  const rounded = Number(value.toPrecision(2));
  return rounded.toFixed(Math.max(0, 1 - Math.max(size, Math.floor(Math.log10(rounded)))));
}

/** A duration in seconds, in words: "0.52 s", "9.1 s", "41 s", "5 min 28 s", "1 h 04 min", "3 d 04 h". */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 0) return `-${formatDuration(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 0.0995) return shortDuration(seconds);
  if (seconds < 9.95) return `${twoFigures(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < MINUTE) return `${whole} s`;
  return longDuration(whole);
}

/** Below a tenth of a second, milliseconds are easier to compare. */
function shortDuration(seconds: number): string {
  const millis = seconds * 1000;
  if (millis < 0.0095) return "<0.01 ms";
  if (millis < 9.95) return `${twoFigures(millis)} ms`;
  return `${(Math.round(millis) / 1000).toFixed(3)} s`;
}

function longDuration(whole: number): string {
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${pad(whole % MINUTE)} s`;
  const minutes = Math.floor(whole / MINUTE);
  if (whole < DAY) return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
  const hours = Math.floor(whole / HOUR);
  return `${formatCount(Math.floor(hours / 24))} d ${pad(hours % 24)} h`;
}

/** How long ago or ahead, as coarse as it is told: "41 s", "12 min", "1 h 04 min". */
export function formatSpan(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  return longDuration(whole);
}

/** A duration as a figure with a small unit, for the large numbers. Compound ones have no unit apart. */
export function durationMeasure(seconds: number): Measure {
  const text = formatDuration(seconds);
  const space = text.lastIndexOf(" ");
  const isSimple = space > 0 && text.indexOf(" ") === space;
  return isSimple ? { figure: text.slice(0, space), unit: text.slice(space + 1) } : { figure: text, unit: "" };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: MINUTE, min: MINUTE, h: HOUR, d: DAY };

/** Reads what a person types for a duration: "10s", "1.5 h", "5m". Nothing else is guessed. */
export function parseDuration(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)\s*$/.exec(text);
  if (!found) return null;
  return Number(found[1]) * (UNIT_SECONDS[found[2] ?? ""] ?? Number.NaN);
}
