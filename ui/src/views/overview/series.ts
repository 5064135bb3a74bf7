import type { Grain, Percentiles, SeriesLine, SeriesView } from "../../api/types/reports";

/** One line of statistics, ready to be drawn. */
export interface Drawn {
  grain: Grain;
  times: number[];
  /** Tasks a minute. */
  done: number[];
  submitted: number[];
  /** Attempts in each span. */
  retried: number[];
  died: number[];
  /** The share that ended well; null where nothing ended. */
  success: (number | null)[];
  wait: (Percentiles | null)[];
  run: (Percentiles | null)[];
}

const MINUTES: Readonly<Record<Grain, number>> = { minute: 1, hour: 60, day: 1440 };

function lineOf(view: SeriesView, name: string): SeriesLine | undefined {
  return view.lines.find((line) => line.name === name);
}

function sum(...values: (number | undefined)[]): number {
  return values.reduce<number>((all, value) => all + (value ?? 0), 0);
}

/**
 * The last span is not over yet. A minute that has only begun would look like a breakdown, so it is left out; an hour or
 * a day is drawn with the rate that it has so far.
 */
export function drawSeries(view: SeriesView, name: string, now: number): Drawn {
  const line = lineOf(view, name);
  const all = view.times.map((time) => Date.parse(time));
  const times = view.grain === "minute" ? all.slice(0, -1) : all;
  const whole = MINUTES[view.grain];
  const minutesOf = (at: number) => (at < all.length - 1 ? whole : Math.max(1, Math.min(whole, (now - (all[at] ?? now)) / 60_000)));
  const ended = (at: number) => sum(line?.success[at], line?.failed[at], line?.dead[at], line?.cancelled[at]);
  const decided = (at: number) => sum(line?.success[at], line?.failed[at], line?.dead[at]);
  const each = <Value>(read: (at: number) => Value) => times.map((_, at) => read(at));
  return {
    grain: view.grain,
    times,
    done: each((at) => ended(at) / minutesOf(at)),
    submitted: each((at) => (line?.submitted[at] ?? 0) / minutesOf(at)),
    retried: each((at) => sum(line?.retries[at])),
    died: each((at) => sum(line?.failed[at], line?.dead[at])),
    success: each((at) => (decided(at) > 0 ? (line?.success[at] ?? 0) / decided(at) : null)),
    wait: each((at) => line?.wait[at] ?? null),
    run: each((at) => line?.run[at] ?? null),
  };
}

export interface Sums {
  submitted: number;
  success: number;
  /** Failed for good, dead letters among them. */
  failed: number;
}

/** What happened in the whole range, the span that is not over included. */
export function sumSeries(view: SeriesView, name: string): Sums {
  const line = lineOf(view, name);
  const total = (values: number[] | undefined) => sum(...(values ?? []));
  return { submitted: total(line?.submitted), success: total(line?.success), failed: total(line?.failed) + total(line?.dead) };
}

export function latest<Value>(values: readonly (Value | null)[]): Value | null {
  return values.findLast((value) => value !== null) ?? null;
}

/** Where a version first appears among workers, if there is more than one: a deploy. */
export function versionMarks(workers: readonly { version: string; started_at: string }[]): { at: number; label: string }[] {
  const first = new Map<string, number>();
  for (const { version, started_at } of workers) {
    const at = Date.parse(started_at);
    if (version && at < (first.get(version) ?? Number.POSITIVE_INFINITY)) first.set(version, at);
  }
  const inOrder = [...first].sort(([, one], [, other]) => one - other);
  return inOrder.slice(1).map(([version, at]) => ({ at, label: `version ${version}` }));
}
