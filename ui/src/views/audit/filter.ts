import type { AuditRow } from "../../api/types/events";
import { type Parts, readParts, writeParts } from "../../filter/parts";
import type { Qualifier } from "../../filter/qualifiers";
import { isWholeId } from "../../format/ids";

const NAMES = ["who", "what", "target"] as const;
export type AuditName = (typeof NAMES)[number];

/** What the audit log can be asked for: a part of each text, in any case. */
export type AuditFilter = Parts<AuditName>;

export const AUDIT_QUALIFIERS: readonly Qualifier[] = [
  { name: "who", comparisons: [":"], hint: "a part of the name" },
  { name: "what", comparisons: [":"], hint: "for example paused, token, schedule" },
  { name: "target", comparisons: [":"], hint: "of a queue, task, schedule, worker …" },
];

const LONGEST = 200;

export function isName(text: string): text is AuditName {
  return (NAMES as readonly string[]).includes(text);
}

/** The filter of a text, and what is wrong with it. A bare word is a whole id, or a part of what was done. */
export function readFilter(text: string): { filter: AuditFilter; mistake: string | null } {
  const { filter, mistake } = readParts(text, NAMES, (word) => (isWholeId(word) ? "target" : "what"));
  const long = NAMES.filter((name) => (filter[name]?.length ?? 0) > LONGEST);
  for (const name of long) delete filter[name];
  return { filter, mistake: mistake ?? (long[0] ? `What stands after ${long[0]} has at most ${LONGEST} letters.` : null) };
}

export function writeFilter(filter: AuditFilter): string {
  return writeParts(filter, NAMES);
}

/** The different values of some entries, those of the most entries first. */
export function valuesAmong(rows: readonly AuditRow[], name: AuditName): string[] {
  const counts = new Map<string, number>();
  for (const row of rows) if (row[name]) counts.set(row[name], (counts.get(row[name]) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one).map(([value]) => value);
}
