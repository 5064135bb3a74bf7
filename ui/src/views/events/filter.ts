import type { EventRow } from "../../api/types/events";
import { type Parts, readParts, writeParts } from "../../filter/parts";
import type { Qualifier } from "../../filter/qualifiers";
import { isWholeId } from "../../format/ids";
import { KINDS } from "./kinds";

export const NAMES = ["kind", "id", "type", "worker"] as const;
export type FilterName = (typeof NAMES)[number];

/** What the log can be asked for: one value of each. */
export type EventFilter = Parts<FilterName>;

export const EVENT_QUALIFIERS: readonly Qualifier[] = [
  { name: "kind", comparisons: [":"], hint: "task.died, worker, breaker …", values: KINDS },
  { name: "id", comparisons: [":"], hint: "of a task, worker, schedule, queue …" },
  { name: "type", comparisons: [":"], hint: "task type" },
  { name: "worker", comparisons: [":"], hint: "id of a worker" },
];

/** A bare word is a kind that there is, a whole id, or a type. */
function nameOfWord(word: string): FilterName {
  if (KINDS.includes(word)) return "kind";
  return isWholeId(word) ? "id" : "type";
}

/** The filter of a text, and what is wrong with it. What is wrong is left out. */
export function readFilter(text: string): { filter: EventFilter; mistake: string | null } {
  return readParts(text, NAMES, nameOfWord);
}

export function writeFilter(filter: EventFilter): string {
  return writeParts(filter, NAMES);
}

/** The same judgement as the server's, for facts that come live. */
export function fits(fact: EventRow, filter: EventFilter): boolean {
  const { kind, id, type, worker } = filter;
  if (kind !== undefined && fact.kind !== kind && !fact.kind.startsWith(`${kind}.`)) return false;
  return (id === undefined || fact.id === id) && (type === undefined || fact.type === type) && (worker === undefined || fact.worker_id === worker);
}
