import type { NewTask } from "../../api/types/tasks";
import type { Json } from "../../components/JsonViewer";

/** A text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  if (text !== "" && !/[^A-Za-z0-9_./:=@%+,-]/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A value as Python writes it. */
export function pythonValue(value: Json): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  return `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${pythonValue(item)}`).join(", ")}}`;
}

/** The same as a request. `needsToken` where callers have to say who they are. */
export function asCurl(task: NewTask, url: string, needsToken: boolean): string {
  const lines = [`curl ${shellWord(url)}`, "-H 'content-type: application/json'", ...(needsToken ? ['-H "authorization: Bearer $TICKWORK_TOKEN"'] : []), `-d ${shellWord(JSON.stringify(task))}`];
  return lines.join(" \\\n  ");
}

const FLAGS: readonly (readonly [keyof NewTask, string])[] = [
  ["queue", "--queue"],
  ["priority", "--priority"],
  ["delay", "--delay"],
  ["schedule_at", "--at"],
  ["max_retry", "--max-retry"],
  ["timeout", "--timeout"],
  ["key", "--key"],
  ["dedup_key", "--dedup-key"],
  ["dedup_ttl", "--dedup-ttl"],
  ["unique", "--unique"],
];

/** The same with the command line. */
export function asCommand(task: NewTask): string {
  const words = ["tickwork submit", shellWord(task.type)];
  if (task.payload !== undefined) words.push(shellWord(JSON.stringify(task.payload)));
  for (const [field, flag] of FLAGS) {
    const value = task[field];
    if (value !== undefined) words.push(`${flag} ${shellWord(String(value))}`);
  }
  for (const [name, value] of Object.entries(task.tags ?? {})) words.push(`--tag ${shellWord(`${name}=${value}`)}`);
  if (task.context) words.push(`--context ${shellWord(JSON.stringify(task.context))}`);
  return words.join(" ");
}

const PYTHON_OPTIONS: readonly (keyof NewTask)[] = ["queue", "priority", "delay", "max_retry", "timeout", "key", "tags", "dedup_key", "dedup_ttl", "unique", "context"];

/** The same in Python, with an `app` at hand. */
export function asPython(task: NewTask): string {
  const parts = [JSON.stringify(task.type)];
  if (task.payload !== undefined) parts.push(pythonValue(task.payload));
  if (task.schedule_at !== undefined) parts.push(`schedule_at=datetime.fromisoformat(${JSON.stringify(task.schedule_at)})`);
  for (const name of PYTHON_OPTIONS) {
    const value = task[name];
    if (value !== undefined) parts.push(`${name}=${pythonValue(value as Json)}`);
  }
  const oneLine = `await app.submit(${parts.join(", ")})`;
  return oneLine.length <= 88 ? oneLine : `await app.submit(\n    ${parts.join(",\n    ")},\n)`;
}
