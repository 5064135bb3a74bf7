import type { Percentiles } from "./reports";

/** A limit, breaker or switch at which tasks of a queue wait. */
export interface Hold {
  by: "limit" | "breaker" | "switch";
  of: string;
  /** Null: tasks of other queues wait there too, and how many are of which is not known. */
  waiting: number | null;
}

export interface QueueRow {
  name: string;
  /** Of the three bands together, those that are parked among them. */
  ready: number;
  running: number;
  high: number;
  normal: number;
  low: number;
  /** By type: ready tasks in a side lane, as no worker may start that type now. */
  parked: Record<string, number>;
  workers: number;
  slots: number;
  paused: boolean;
  note: string;
  paused_at: string | null;
  waiting_since: string | null;
  /** How long, in seconds, the first of its ready tasks waits. */
  latency: number | null;
  /** Tasks a minute, over the last five. */
  in_rate: number;
  out_rate: number;
  failure_rate: number | null;
  /** How many tasks ended in each minute of the last hour. */
  done: number[];
  holds: Hold[];
}

/** Numbers of one queue that are counted one by one, so not for lists. */
export interface QueueStats {
  delayed_count: number;
  high_count: number;
  normal_count: number;
  low_count: number;
  running_count: number;
  worker_count: number;
  dlq_count: number;
  /** Not all of those that are delayed, run or are dead were counted. */
  at_least: boolean;
}

/** A schema of JSON, as far as signatures are read from it. */
export interface PayloadSchema {
  $ref?: string;
  $defs?: Record<string, PayloadSchema>;
  title?: string;
  type?: string | string[];
  format?: string;
  properties?: Record<string, PayloadSchema>;
  required?: string[];
  items?: PayloadSchema;
  anyOf?: PayloadSchema[];
  enum?: unknown[];
  default?: unknown;
}

/** A task type that a worker knows or that has run of late. Counts and times are of the last hour. */
export interface TypeRow {
  name: string;
  workers: number;
  /** Those that its workers take from. */
  queues: string[];
  /** Those in which tasks of the type were seen in the last hour. */
  seen_in: string[];
  paused: boolean;
  note: string;
  submitted: number;
  ended: number;
  failure_rate: number | null;
  wait: Percentiles | null;
  run: Percentiles | null;
  options: Record<string, unknown>;
  schema: PayloadSchema | null;
}

export interface Changed {
  changed: boolean;
}

/** A page of tasks that wait, as far as it is shown who fills a queue. */
export interface WaitingPage {
  items: { id: string; type: string; key: string | null }[];
  cursor: string | null;
}
