/** What the operations of tasks, bulk actions and saved views send and take. Moments are ISO texts, durations seconds. */

import type { Json } from "../../components/JsonViewer";
import type { Status } from "../types";

export type HeldBy = "limit" | "breaker" | "switch";

/** A task in a list. */
export interface TaskRow {
  id: string;
  type: string;
  queue: string;
  priority: number;
  status: Status;
  attempt: number;
  max_retry: number | null;
  submitted_at: string;
  scheduled_at: string;
  started_at: string | null;
  finished_at: string | null;
  execution_time: number | null;
  worker_id: string | null;
  schedule_id: string | null;
  key: string | null;
  tags: Record<string, string>;
  /** The first line of the last one. */
  error: string | null;
  progress: number | null;
  held_by: HeldBy | null;
  cancelling: boolean;
  /** What one that waits is waiting for. */
  why: string | null;
}

/** A page may be short, or even empty, while `cursor` says that there is more: one request looks at a bounded number. */
export interface TaskPage {
  items: TaskRow[];
  cursor: string | null;
  looked: number;
  /** How many match, where counters know it. */
  total: number | null;
}

/** A run before the last one. `end` is failed, snoozed or lost, or the status in which a retry by hand found it. */
export interface Attempt {
  number: number;
  started_at: string;
  finished_at: string;
  worker_id: string;
  end: string;
  duration: number | null;
  error: string | null;
}

export type LargeValue = "payload" | "context" | "result";

/** A task whole. `large` names what is left out because of its size, and is asked for by itself. */
export interface TaskView extends TaskRow {
  payload: Json;
  payload_bytes: number;
  context: Record<string, Json>;
  result: Json;
  result_code: number | null;
  result_message: string;
  last_error: string | null;
  retry_count: number;
  losses: number;
  progress_note: string;
  depends_on: string[];
  waiting_for: string[];
  timeout: number | null;
  retry: Json;
  dedup_key: string | null;
  dedup_ttl: number | null;
  unique: string | null;
  expires_at: string | null;
  retention: number | null;
  serializer: string;
  executor: string;
  target: string | null;
  requires: Record<string, string>;
  attempts: Attempt[];
  log: string[];
  large: LargeValue[];
  /** Some of it is hidden from this role. */
  masked: boolean;
}

export interface TaskValues {
  payload: Json;
  context: Record<string, Json>;
  result: Json;
}

export interface Dependencies {
  upstream: TaskRow[];
  dependants: TaskRow[];
  gone: string[];
  /** Those that were cancelled with it were not looked for: too many tasks were cancelled since. */
  cut: boolean;
}

export type Reason =
  | "not_due"
  | "retry_not_due"
  | "blocked"
  | "queue_paused"
  | "type_paused"
  | "switched_off"
  | "limit_full"
  | "rate_spent"
  | "breaker_open"
  | "no_worker"
  | "queue_unserved"
  | "type_unknown"
  | "labels_missing"
  | "assigned"
  | "workers_busy"
  | "workers_draining"
  | "in_line"
  | "next"
  | "running"
  | "stopping"
  | "worker_lost"
  | "ended";

/** Why a task is not running. `blockers` names what is in its way: tasks, a pause, workers, or a rule (`type:mail`). */
export interface Explanation {
  reason: Reason;
  text: string;
  until: string | null;
  ahead: number | null;
  blockers: string[];
}

/** A task to submit. What is left out is decided by the type's options. */
export interface NewTask {
  type: string;
  payload?: Json;
  queue?: string;
  priority?: number;
  delay?: number;
  schedule_at?: string;
  max_retry?: number;
  timeout?: number;
  dedup_key?: string;
  dedup_ttl?: number;
  unique?: "queued" | "unfinished";
  key?: string;
  tags?: Record<string, string>;
  context?: Record<string, Json>;
}

export type BulkAction = "cancel" | "retry" | "run_now" | "delete" | "reschedule";

export interface BulkWanted {
  action: BulkAction;
  filter: string;
  force?: boolean;
  cascade?: boolean;
  rate?: number;
  delay?: number;
}

/** What a bulk action would do; `preview` is the handle to do it with. */
export interface BulkPreview {
  preview: string;
  action: BulkAction;
  filter: string;
  count: number;
  /** More than `count` may match. */
  at_least: boolean;
  statuses: Partial<Record<Status, number>>;
  samples: TaskRow[];
  /** Tasks submitted after it are not touched. */
  moment: string;
  expires_at: string;
}

export interface BulkRun {
  id: string;
  action: BulkAction;
  filter: string;
  state: "running" | "done" | "stopped" | "failed";
  done: number;
  refused: number;
  expected: number;
  errors: string[];
  began_at: string;
  ended_at: string | null;
}

/** A filter with a name, for all who use this namespace. */
export interface SavedView {
  name: string;
  filter: string;
  by: string;
}

interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

/** Of a task type, what lists and forms of tasks need. */
export interface KnownType {
  name: string;
  workers: number;
  paused: boolean;
  /** In the last hour. */
  submitted: number;
  run: Percentiles | null;
  options: Record<string, Json>;
  schema: Json;
}

/** Of a queue, what lists and forms of tasks need. */
export interface KnownQueue {
  name: string;
  ready: number;
  paused: boolean;
}

/** Counts a minute, an hour or a day; one line, or one a type or queue. */
export interface EndedSeries {
  grain: "minute" | "hour" | "day";
  times: string[];
  lines: { name: string; submitted: number[]; success: number[]; failed: number[]; dead: number[]; cancelled: number[] }[];
}
