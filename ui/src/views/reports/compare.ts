import type { Report, ReportRow } from "../../api/types/reports";

export interface Compared {
  row: ReportRow;
  /** The same of the period before; null where there is none. */
  before: ReportRow | null;
}

/** Types and queues are found by name; days and hours by their place, as they are other ones. */
export function compareRows(report: Report, earlier: Report | null): Compared[] {
  if (!earlier) return report.rows.map((row) => ({ row, before: null }));
  const byName = new Map(earlier.rows.map((row) => [row.name, row]));
  const isByTime = report.rows.some((row) => row.at !== null);
  const shift = earlier.rows.length - report.rows.length;
  return report.rows.map((row, at) => ({ row, before: (isByTime ? earlier.rows[at + shift] : byName.get(row.name)) ?? null }));
}

/** A change that is worth a word: a fifth and more, of what takes longer than a blink. */
const NOTABLE = 1.2;
const BLINK = 0.005;
const ENOUGH = 20;

function ratio(now: number | undefined, was: number | undefined): number | null {
  if (now === undefined || was === undefined || was <= 0 || Math.max(now, was) < BLINK) return null;
  return now / was;
}

export type Change = "slower" | "faster" | null;

export function changeOf(now: number | undefined, was: number | undefined): Change {
  const times = ratio(now, was);
  if (times === null) return null;
  if (times >= NOTABLE) return "slower";
  return times <= 1 / NOTABLE ? "faster" : null;
}

/** The row whose runs got slower most, of those that ran often enough in both periods to tell. */
export function slowest(rows: readonly Compared[]): Compared | null {
  const grown = rows
    .filter(({ row, before }) => before !== null && row.started >= ENOUGH && before.started >= ENOUGH && changeOf(row.run?.p95, before.run?.p95) === "slower")
    .map((one) => ({ one, times: ratio(one.row.run?.p95, one.before?.run?.p95) ?? 0 }))
    .sort((one, other) => other.times - one.times);
  return grown[0]?.one ?? null;
}

/** Those that failed most, by number. */
export function worst(rows: readonly Compared[]): Compared | null {
  const failed = ({ row }: Compared) => row.failed + row.dead;
  const found = rows.toSorted((one, other) => failed(other) - failed(one))[0];
  return found && failed(found) > 0 ? found : null;
}
