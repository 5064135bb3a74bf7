import type { EventRow } from "../../api/types/events";
import type { Qualifier } from "../../filter/qualifiers";
import { quote, tokenise, type Token } from "../../filter/tokens";
import { isWholeId } from "../../format/ids";
import { KINDS } from "./kinds";

export const NAMES = ["kind", "id", "type", "worker"] as const;
export type FilterName = (typeof NAMES)[number];

/** What the log can be asked for: one value of each. */
export type EventFilter = Partial<Record<FilterName, string>>;

export const EVENT_QUALIFIERS: readonly Qualifier[] = [
  { name: "kind", comparisons: [":"], hint: "task.died, worker, breaker …", values: KINDS },
  { name: "id", comparisons: [":"], hint: "of a task, worker, schedule, queue …" },
  { name: "type", comparisons: [":"], hint: "task type" },
  { name: "worker", comparisons: [":"], hint: "id of a worker" },
];

function isName(text: string): text is FilterName {
  return (NAMES as readonly string[]).includes(text);
}

/** A bare word is a kind that there is, a whole id, or a type. */
function nameOfWord(word: string): FilterName {
  if (KINDS.includes(word)) return "kind";
  return isWholeId(word) ? "id" : "type";
}

function mistakeIn(token: Token, filter: EventFilter, name: FilterName): string | null {
  if (token.negated) return "The log can be asked for what something is, not for what it is not.";
  if (token.values.length > 1) return `The log can be asked for one ${name} at a time.`;
  if (token.comparison !== "" && token.comparison !== ":") return `After ${name} stands a colon.`;
  return filter[name] === undefined ? null : `There are two of ${name}; the log can be asked for one at a time.`;
}

/** The filter of a text, and what is wrong with it. What is wrong is left out. */
export function readFilter(text: string): { filter: EventFilter; mistake: string | null } {
  const filter: EventFilter = {};
  let mistake: string | null = null;
  for (const token of tokenise(text)) {
    const value = token.values[0] ?? "";
    const name = token.name === "" ? nameOfWord(value) : token.name;
    // The bar itself marks names that it does not know.
    if (!isName(name) || value === "") continue;
    const wrong = mistakeIn(token, filter, name);
    mistake ??= wrong;
    if (!wrong) filter[name] = value;
  }
  return { filter, mistake };
}

export function writeFilter(filter: EventFilter): string {
  return NAMES.flatMap((name) => (filter[name] ? [`${name}:${quote(filter[name])}`] : [])).join(" ");
}

/** The same judgement as the server's, for facts that come live. */
export function fits(fact: EventRow, filter: EventFilter): boolean {
  const { kind, id, type, worker } = filter;
  if (kind !== undefined && fact.kind !== kind && !fact.kind.startsWith(`${kind}.`)) return false;
  return (id === undefined || fact.id === id) && (type === undefined || fact.type === type) && (worker === undefined || fact.worker_id === worker);
}
