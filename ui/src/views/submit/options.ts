import type { NewTask, TaskView } from "../../api/types/tasks";
import { parseDuration } from "../../format/durations";
import { atInZone } from "./moments";

/** Everything but the payload, as it is typed. Empty means that the type decides. */
export interface OptionsDraft {
  queue: string;
  priority: string;
  when: "now" | "delay" | "at";
  delay: string;
  at: string;
  key: string;
  tags: string;
  maxRetry: string;
  timeout: string;
  dedupKey: string;
  dedupTtl: string;
  unique: "" | "queued" | "unfinished";
}

export const NO_OPTIONS: OptionsDraft = { queue: "", priority: "", when: "now", delay: "10m", at: "", key: "", tags: "", maxRetry: "", timeout: "", dedupKey: "", dedupTtl: "", unique: "" };

export type Mistakes = Partial<Record<keyof OptionsDraft, string>>;

const DURATION = "Write a number with ms, s, m, h or d.";

/** Tags as they are typed: "env=prod shop=paris", one after another or one a line. */
export function readTags(text: string): Record<string, string> | null {
  const tags: Record<string, string> = {};
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const at = word.search(/[=:]/);
    if (at <= 0) return null;
    tags[word.slice(0, at)] = word.slice(at + 1);
  }
  return tags;
}

export interface ReadOptions {
  fields: Omit<NewTask, "type" | "payload" | "context">;
  mistakes: Mistakes;
}

export function readOptions(draft: OptionsDraft, zone: string): ReadOptions {
  const fields: ReadOptions["fields"] = {};
  const mistakes: Mistakes = {};
  const text = (name: "queue" | "key" | "dedupKey", field: "queue" | "key" | "dedup_key") => {
    if (draft[name].trim()) fields[field] = draft[name].trim();
  };
  const seconds = (name: "timeout" | "dedupTtl" | "delay", field: "timeout" | "dedup_ttl" | "delay") => {
    if (!draft[name].trim()) return;
    const value = parseDuration(draft[name]);
    if (value === null) mistakes[name] = DURATION;
    else fields[field] = value;
  };
  text("queue", "queue");
  text("key", "key");
  text("dedupKey", "dedup_key");
  if (fields.queue && !/^[A-Za-z0-9._:@-]+$/.test(fields.queue)) mistakes.queue = "Letters, digits and . _ : @ - are allowed.";
  if (draft.priority) fields.priority = Number(draft.priority);
  if (draft.maxRetry.trim()) {
    if (/^\d{1,6}$/.test(draft.maxRetry.trim())) fields.max_retry = Number(draft.maxRetry);
    else mistakes.maxRetry = "Write a whole number from 0 on.";
  }
  seconds("timeout", "timeout");
  seconds("dedupTtl", "dedup_ttl");
  if (draft.unique) fields.unique = draft.unique;
  if (draft.when === "delay") {
    if (draft.delay.trim()) seconds("delay", "delay");
    else mistakes.delay = DURATION;
  }
  if (draft.when === "at") {
    const at = atInZone(draft.at, zone);
    if (at === null) mistakes.at = "Say when.";
    else fields.schedule_at = at;
  }
  const tags = readTags(draft.tags);
  if (tags === null) mistakes.tags = "Write each as NAME=VALUE.";
  else if (Object.keys(tags).length > 0) fields.tags = tags;
  return { fields, mistakes };
}

/** The options of a task that is to be submitted once more. Its time and its dedup key were its own. */
export function optionsLike(task: TaskView): OptionsDraft {
  return {
    ...NO_OPTIONS,
    queue: task.queue,
    priority: task.priority === 5 ? "" : String(task.priority),
    key: task.key ?? "",
    tags: Object.entries(task.tags).map(([name, value]) => `${name}=${value}`).join(" "),
    maxRetry: task.max_retry === null ? "" : String(task.max_retry),
  };
}
