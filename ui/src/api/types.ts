/**
 * What the API sends, written by hand for now. Moments are ISO texts, durations are seconds. One file, so that it can be
 * made from the API's description later.
 */

export type Status = "pending" | "blocked" | "ready" | "assigned" | "running" | "retrying" | "success" | "failed" | "dead" | "cancelled";

export type Role = "viewer" | "submitter" | "operator" | "admin";

export type StatusCounts = Partial<Record<Status, number>>;

/** The numbers beside the entries of the sidebar. */
export interface Counts {
  time: string;
  tasks: StatusCounts;
  queues: number;
  workers: number;
  schedules: number;
  /** Tasks that wait at limits, breakers and switches. */
  held: number;
  /** Breakers that are open. */
  breakers: number;
  /** Alerts that fire. */
  firing: number;
}

/** A fact, as the stream and the log tell it. */
export type { EventRow as Event } from "./types/events";

export interface Tick {
  time: string;
  counts: StatusCounts;
  workers: number;
}

/** One page of a list. `next` is the cursor of the following page, null at the end. */
export interface Page<Item> {
  items: Item[];
  next: string | null;
  /** Set where the count was bounded: there are at least this many. */
  total?: number;
  total_is_bound?: boolean;
}
