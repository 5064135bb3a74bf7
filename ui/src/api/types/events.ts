/** The log of facts, the audit log and alerts, as the API sends them. */

/** One fact. What does not apply is an empty text or 0. */
export interface EventRow {
  seq: number;
  at: string;
  /** "task.died": what stands before the dot says what `id` names. */
  kind: string;
  id: string;
  type: string;
  queue: string;
  worker_id: string;
  attempt: number;
  duration: number;
  detail: string;
}

export interface EventPage {
  items: EventRow[];
  /** Asks for older facts; null where there are none. */
  before: number | null;
  /** The number of the newest fact of the log. */
  last: number;
  /** Facts have left the log. */
  missed: boolean;
}

export type Journal = "changes" | "submits" | "refusals" | "sign_ins";

export interface AuditRow {
  number: number;
  at: string;
  id: string;
  who: string;
  role: string;
  via: string;
  address: string;
  what: string;
  target: string;
  detail: string;
  /** "done", or the code of the problem that refused it. */
  result: string;
  count: number;
}

export interface AuditPage {
  items: AuditRow[];
  before: number | null;
}

export type AlertState = "ok" | "pending" | "firing";

export interface Alert {
  name: string;
  state: AlertState;
  since: string;
  /** Null where it could not be read. */
  value: number | null;
  metric: string;
  operator: string;
  threshold: number;
  /** For how long the condition must hold, in seconds. */
  duration: number;
  looked_at: string;
  silenced: Hush | null;
}

/** Who keeps others from being told of something, why, and until when. */
export interface Hush {
  by: string;
  note: string;
  since: string;
  until: string;
}
