import type { FailureGroup } from "../../api/types/failures";
import { type Token, tokenise } from "../../filter/tokens";
import type { Qualifier } from "../../filter/qualifiers";

export const FAILURE_QUALIFIERS: readonly Qualifier[] = [
  { name: "type", comparisons: [":"], hint: "task type" },
  { name: "error", comparisons: [":"], hint: "name of an error, or a part of its message" },
  { name: "place", comparisons: [":"], hint: "a part of the place in the program" },
  { name: "is", comparisons: [":"], hint: "new, dead, retrying or muted", values: ["new", "dead", "retrying", "muted"] },
];

const DAY = 86_400_000;

/** It was not seen before the last 24 hours. */
export function isNew(group: FailureGroup, now: number): boolean {
  return now - Date.parse(group.first_seen) < DAY;
}

export function nameOf(group: FailureGroup): string {
  return group.error || group.message || "No error was given";
}

function holds(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}

function fitsValue(group: FailureGroup, name: string, value: string, now: number): boolean {
  if (name === "type") return group.types.includes(value);
  if (name === "error") return holds(group.error, value) || holds(group.message, value);
  if (name === "place") return holds(group.place, value);
  if (name === "is" && value === "muted") return group.muted !== null;
  if (name === "is") return value === "new" ? isNew(group, now) : value === "dead" ? group.dead > 0 : group.dead === 0;
  return holds(`${group.error} ${group.message} ${group.types.join(" ")}`, value);
}

function fits(group: FailureGroup, token: Token, now: number): boolean {
  return token.values.some((value) => fitsValue(group, token.name, value, now)) !== token.negated;
}

/** All groups are here, a few hundred at most, so they are narrowed down where they are. */
export function narrow(groups: readonly FailureGroup[], filter: string, now: number): FailureGroup[] {
  const tokens = tokenise(filter);
  return groups.filter((group) => tokens.every((token) => fits(group, token, now)));
}

export interface TypeRow {
  type: string;
  errors: number;
  dead: number;
  total: number;
  hours: number[];
  first_seen: string;
  last_seen: string;
}

/** The same failures by the type of their tasks. An error of several types stands under each. */
export function byType(groups: readonly FailureGroup[]): TypeRow[] {
  const rows = new Map<string, TypeRow>();
  for (const group of groups) {
    for (const type of group.types) {
      const row = rows.get(type);
      if (!row) rows.set(type, { type, errors: 1, dead: group.dead, total: group.total, hours: [...group.hours], first_seen: group.first_seen, last_seen: group.last_seen });
      else {
        row.errors += 1;
        row.dead += group.dead;
        row.total += group.total;
        row.hours = row.hours.map((count, at) => count + (group.hours[at] ?? 0));
        row.first_seen = row.first_seen < group.first_seen ? row.first_seen : group.first_seen;
        row.last_seen = row.last_seen > group.last_seen ? row.last_seen : group.last_seen;
      }
    }
  }
  return [...rows.values()];
}
