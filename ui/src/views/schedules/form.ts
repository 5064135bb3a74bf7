import type { Schedule } from "../../api/types/schedules";
import { parseDuration } from "../../format/durations";
import { tidyCron } from "../../format/cron";

/** The form as it is typed: everything is text until it is read. */
export interface Draft {
  id: string;
  name: string;
  type: string;
  payload: string;
  cron: string;
  timezone: string;
  dst: string;
  overlap: string;
  misfire: string;
  misfire_grace: string;
  misfire_cap: string;
  on_exhausted: string;
  queue: string;
  priority: string;
  max_retry: string;
  timeout: string;
  key: string;
  tags: string;
}

export type FieldName = keyof Draft;
export type Mistakes = Partial<Record<FieldName, string>>;

export const LABELS: Readonly<Record<FieldName, string>> = {
  id: "Id",
  name: "Name",
  type: "Type",
  payload: "Payload",
  cron: "Cron line",
  timezone: "Zone",
  dst: "When clocks are set",
  overlap: "Overlap",
  misfire: "Missed ticks",
  misfire_grace: "Grace",
  misfire_cap: "Most at once",
  on_exhausted: "When retries are spent",
  queue: "Queue",
  priority: "Priority",
  max_retry: "Retries",
  timeout: "Timeout",
  key: "Key",
  tags: "Tags",
};

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "m"],
];

/** The shortest text that `readSeconds` reads back: "1h", "5m", "90s". */
export function secondsText(seconds: number): string {
  const unit = UNITS.find(([size]) => seconds > 0 && seconds % size === 0);
  return unit ? `${seconds / unit[0]}${unit[1]}` : `${seconds}s`;
}

function tagsText(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

const NEW: Draft = {
  id: "",
  name: "",
  type: "",
  payload: "",
  cron: "",
  timezone: "UTC",
  dst: "once",
  overlap: "skip",
  misfire: "latest",
  misfire_grace: "1h",
  misfire_cap: "100",
  on_exhausted: "continue",
  queue: "",
  priority: "",
  max_retry: "",
  timeout: "",
  key: "",
  tags: "",
};

export function emptyDraft(timezone: string): Draft {
  return { ...NEW, timezone };
}

export function draftOf(schedule: Schedule): Draft {
  return {
    id: schedule.id,
    name: schedule.name,
    type: schedule.type,
    payload: schedule.payload === null ? "" : JSON.stringify(schedule.payload, null, 2),
    cron: schedule.cron ?? "",
    timezone: schedule.timezone,
    dst: schedule.dst,
    overlap: schedule.overlap,
    misfire: schedule.misfire,
    misfire_grace: secondsText(schedule.misfire_grace),
    misfire_cap: String(schedule.misfire_cap),
    on_exhausted: schedule.on_exhausted,
    queue: schedule.queue,
    priority: String(schedule.priority),
    max_retry: schedule.max_retry === null ? "" : String(schedule.max_retry),
    timeout: schedule.timeout === null ? "" : secondsText(schedule.timeout),
    key: schedule.key ?? "",
    tags: tagsText(schedule.tags),
  };
}

class Mistake extends Error {}

function readWhole(text: string, least: number, most: number): number | null {
  if (text.trim() === "") return null;
  const value = Number(text);
  if (!Number.isInteger(value) || value < least || value > most) throw new Mistake(`Give a whole number from ${least} to ${most.toLocaleString("en-GB")}.`);
  return value;
}

function readSeconds(text: string): number | null {
  if (text.trim() === "") return null;
  const seconds = parseDuration(text) ?? (/^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null);
  if (seconds === null) throw new Mistake("Give a time such as 90s, 5m or 1h.");
  return seconds;
}

function readJson(text: string): unknown {
  if (text.trim() === "") return null;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Mistake(`This is not JSON: ${error instanceof Error ? error.message : "it cannot be read"}.`);
  }
}

function readTags(text: string): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const part of text.split(",").filter((one) => one.trim() !== "")) {
    const at = part.indexOf("=");
    if (at < 1) throw new Mistake("Write tags as name=value, with commas between.");
    tags[part.slice(0, at).trim()] = part.slice(at + 1).trim();
  }
  return tags;
}

function readId(text: string): string {
  if (!/^[A-Za-z0-9._:@-]{1,100}$/.test(text)) throw new Mistake(text === "" ? "Give it an id." : "An id has letters, digits and . _ : @ - only, 100 at most.");
  return text;
}

function readName(text: string): string {
  if (text.trim() === "") throw new Mistake("Name the type of its tasks.");
  return text.trim();
}

const textOrNull = (text: string) => text.trim() || null;
const asIs = (text: string) => text;

const READERS: Readonly<Record<FieldName, (text: string) => unknown>> = {
  id: readId,
  name: (text) => text.trim(),
  type: readName,
  payload: readJson,
  cron: (text) => tidyCron(text) || null,
  timezone: textOrNull,
  dst: asIs,
  overlap: asIs,
  misfire: asIs,
  misfire_grace: (text) => readSeconds(text) ?? 3600,
  misfire_cap: (text) => readWhole(text, 1, 1_000_000) ?? 100,
  on_exhausted: asIs,
  queue: textOrNull,
  priority: (text) => readWhole(text, 1, 10),
  max_retry: (text) => readWhole(text, 0, 1_000_000),
  timeout: readSeconds,
  key: textOrNull,
  tags: readTags,
};

/** What is wrong with what was typed; the cron line and the zone are judged by the server. */
export function mistakesOf(draft: Draft): Mistakes {
  const mistakes: Mistakes = {};
  for (const name of Object.keys(READERS) as FieldName[]) {
    try {
      READERS[name](draft[name]);
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      mistakes[name] = error.message;
    }
  }
  return mistakes;
}

export interface Difference {
  name: FieldName;
  before: string;
  after: string;
}

export function differences(before: Draft, after: Draft): Difference[] {
  return (Object.keys(LABELS) as FieldName[])
    .filter((name) => before[name].trim() !== after[name].trim())
    .map((name) => ({ name, before: before[name], after: after[name] }));
}

/** The fields that are named, as the API takes them. */
export function bodyOf(draft: Draft, names: readonly FieldName[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, READERS[name](draft[name])]));
}

/** What a new schedule is made of: what was filled in, and nothing that is the default anyway. */
export function newBody(draft: Draft): Record<string, unknown> {
  const names = (Object.keys(LABELS) as FieldName[]).filter((name) => ["id", "type", "timezone"].includes(name) || draft[name].trim() !== NEW[name]);
  return bodyOf(draft, names);
}
