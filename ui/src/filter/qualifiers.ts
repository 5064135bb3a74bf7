import type { Token } from "./tokens";

export interface Qualifier {
  name: string;
  /** What may stand after the name: `:` and, for some, comparisons. */
  comparisons: readonly string[];
  hint: string;
  /** Values that never change, offered without asking the server. */
  values?: readonly string[];
}

const STATUSES = ["ready", "running", "retrying", "pending", "blocked", "assigned", "success", "failed", "dead", "cancelled"] as const;
const WAITS = ["time", "tasks", "paused", "limit", "breaker", "switch", "worker", "slot"] as const;
const IS = [":"];
const COMPARES = [">", "<"];

/** The filter language of tasks. */
export const TASK_QUALIFIERS: readonly Qualifier[] = [
  { name: "status", comparisons: IS, hint: "ready, running, dead …", values: STATUSES },
  { name: "type", comparisons: IS, hint: "task type" },
  { name: "queue", comparisons: IS, hint: "name of a queue" },
  { name: "key", comparisons: IS, hint: "for example order:88397" },
  { name: "tag.", comparisons: [""], hint: "for example tag.env:prod" },
  { name: "worker", comparisons: IS, hint: "id of a worker" },
  { name: "error", comparisons: IS, hint: "name of an error" },
  { name: "waits", comparisons: IS, hint: "breaker, paused, limit …", values: WAITS },
  { name: "schedule", comparisons: IS, hint: "name of a schedule" },
  { name: "workflow", comparisons: IS, hint: "id of a workflow" },
  { name: "priority", comparisons: IS, hint: "high, normal, low", values: ["high", "normal", "low"] },
  { name: "id", comparisons: IS, hint: "a whole id" },
  { name: "submitted", comparisons: COMPARES, hint: "a time, for example submitted>1h" },
  { name: "run", comparisons: COMPARES, hint: "longer than, for example run>10s" },
  { name: "wait", comparisons: COMPARES, hint: "longer than, for example wait>5m" },
  { name: "attempt", comparisons: COMPARES, hint: "for example attempt>1" },
];

export function findQualifier(name: string, all: readonly Qualifier[]): Qualifier | undefined {
  return all.find((one) => one.name === name || (one.name.endsWith(".") && name.startsWith(one.name)));
}

/** How many letters differ, moves of neighbours counted once. Names are short, so the plain table will do. */
export function editDistance(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      let best = Math.min((rows[i - 1]?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (rows[i - 1]?.[j - 1] ?? 0) + cost);
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (swapped) best = Math.min(best, (rows[i - 2]?.[j - 2] ?? 0) + 1);
      row.push(best);
    }
    rows.push(row);
  }
  return rows[one.length]?.[other.length] ?? 0;
}

/** Says what is wrong with the name of a token, or nothing. */
export function mistakeOf(token: Token, all: readonly Qualifier[]): string | null {
  if (token.name === "" || findQualifier(token.name, all)) return null;
  const near = all
    .map((one) => ({ name: one.name, away: editDistance(token.name.toLowerCase(), one.name) }))
    .sort((one, other) => one.away - other.away)[0];
  const guess = near && near.away <= 2 ? ` Did you mean ${near.name}?` : "";
  return `${token.name} is not a qualifier.${guess}`;
}
