/** Statistics over time and reports, as the API sends them. */

/** Seconds that a half, 95 % and 99 % of all did not exceed. */
export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

/** Counts and times of one name, one for each time in `SeriesView.times`. */
export interface SeriesLine {
  name: string;
  submitted: number[];
  started: number[];
  success: number[];
  failed: number[];
  dead: number[];
  cancelled: number[];
  retries: number[];
  losses: number[];
  wait: (Percentiles | null)[];
  run: (Percentiles | null)[];
}

export type Grain = "minute" | "hour" | "day";

/** The last point is not over yet. */
export interface SeriesView {
  grain: Grain;
  times: string[];
  lines: SeriesLine[];
}

export type ReportBy = "type" | "queue" | "day" | "hour";

/** The tasks of a type, a queue or a time. */
export interface ReportRow {
  name: string;
  /** The beginning of a span of time; null for types and queues. */
  at: string | null;
  submitted: number;
  started: number;
  success: number;
  failed: number;
  dead: number;
  cancelled: number;
  retries: number;
  losses: number;
  snoozes: number;
  /** Failed and dead ones of those that ended otherwise than by cancelling. */
  failure_rate: number | null;
  wait: Percentiles | null;
  run: Percentiles | null;
  /** Facts that left the log uncounted. */
  missed: number;
}

export interface Report {
  since: string;
  until: string;
  by: string;
  rows: ReportRow[];
  total: ReportRow;
  /** Up to when the log has been counted; null: there are no statistics. */
  through: string | null;
}
