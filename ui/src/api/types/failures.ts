/** Groups of failures, as `GET failures` sends them. */

import type { Hush } from "./events";

/** Failed attempts that have the error, the place in the program and the message in common. */
export interface FailureGroup {
  id: string;
  /** The name of the error; empty for what is no exception. */
  error: string;
  /** Quoted parts and words with digits are left out of it. */
  message: string;
  place: string;
  /** Types of the tasks, some. */
  types: string[];
  first_seen: string;
  last_seen: string;
  /** Attempts that failed by it. */
  total: number;
  /** Tasks that ended by it; it does not fall when they are sent back. */
  dead: number;
  /** Attempts in each of the last 24 hours, the current one at the end. */
  hours: number[];
  /** Ids of the last tasks, the latest first. */
  tasks: string[];
  muted: Hush | null;
}

export interface FailureGroups {
  items: FailureGroup[];
  /** Dead letters there are now, in all. */
  dead: number;
  /** Dead letters that are kept at most. */
  most: number;
  /** Tasks that wait for their next attempt. */
  retrying: number;
}

/** What the views of failures use of a task in a list. */
export interface FailedTask {
  id: string;
  type: string;
  queue: string;
  status: "dead" | "failed";
  attempt: number;
  max_retry: number | null;
  submitted_at: string;
  finished_at: string | null;
  worker_id: string | null;
  key: string | null;
  error: string | null;
}

export interface FailedTaskPage {
  items: FailedTask[];
  cursor: string | null;
  looked: number;
  total: number | null;
}

/** What a bulk action on failures would do. */
export interface BulkPreview {
  /** The handle that `POST bulk` takes. */
  preview: string;
  count: number;
  at_least: boolean;
  samples: FailedTask[];
  /** Tasks submitted after it are not touched. */
  moment: string;
}

export interface BulkRun {
  id: string;
  state: "running" | "done" | "stopped" | "failed";
  done: number;
  refused: number;
  expected: number;
  errors: string[];
}
