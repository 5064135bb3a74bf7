import type { Event, Status } from "../../api/types";
import type { TaskRow } from "../../api/types/tasks";
import { tokenise } from "../../filter/tokens";

/** The status that a task has after a fact; those that are not here leave it as it is, or leave it open. */
export const STATUS_AFTER: Readonly<Record<string, Status>> = {
  "task.due": "ready",
  "task.hastened": "ready",
  "task.rescheduled": "pending",
  "task.parked": "ready",
  "task.assigned": "assigned",
  "task.unassigned": "ready",
  "task.claimed": "running",
  "task.succeeded": "success",
  "task.retrying": "retrying",
  "task.failed": "failed",
  "task.died": "dead",
  "task.snoozed": "pending",
  "task.released": "ready",
  "task.lost": "ready",
  "task.cancelled": "cancelled",
  "task.expired": "cancelled",
  "task.retried": "ready",
};

const ENDED: ReadonlySet<Status> = new Set(["success", "failed", "dead", "cancelled"]);

export function isEnded(status: Status): boolean {
  return ENDED.has(status);
}

export function isGone(kind: string): boolean {
  return kind === "task.deleted" || kind === "task.dropped";
}

function firstLine(detail: Event["detail"]): string | null {
  return typeof detail === "string" && detail ? (detail.split("\n", 1)[0] ?? null) : null;
}

/** A row after a fact about it, as far as the fact tells. */
export function rowAfter(row: TaskRow, event: Event): TaskRow {
  if (event.kind === "task.cancel_asked") return { ...row, cancelling: true };
  const status = STATUS_AFTER[event.kind];
  if (!status) return row;
  const next: TaskRow = { ...row, status, attempt: Math.max(row.attempt, event.attempt ?? 0), why: null, held_by: null };
  if (event.worker_id) next.worker_id = event.worker_id;
  if (status === "running") return { ...next, started_at: event.at, finished_at: null, execution_time: null, error: null, progress: null };
  const hasRun = status === "retrying" || (isEnded(status) && row.status === "running");
  if (hasRun || event.kind === "task.succeeded") next.execution_time = event.duration ?? next.execution_time;
  if (status === "retrying" || status === "failed" || status === "dead") next.error = firstLine(event.detail) ?? next.error;
  if (isEnded(status)) return { ...next, finished_at: event.at, cancelling: false };
  return event.kind === "task.retried" ? { ...next, attempt: 0, finished_at: null, execution_time: null } : next;
}

/** What of a filter a fact can be measured by. */
export interface Judge {
  /** Whether a task of this fact is, or may be, in the list. */
  mayEnter(event: Event): boolean;
  /** False where the filter asks for more than facts tell: then "may". */
  isExact: boolean;
}

const TELLING = new Set(["type", "queue", "status"]);

/** Reads from a filter what facts can be measured by: status, type and queue. */
export function judgeOf(filter: string, readAt: number): Judge {
  const tokens = tokenise(filter);
  const known = tokens.filter((token) => TELLING.has(token.name) && token.comparison === ":");
  const isExact = known.length === tokens.length;
  const hasStatus = known.some((token) => token.name === "status");
  const fits = (event: Event) =>
    known.every((token) => {
      const value = token.name === "type" ? event.type : token.name === "queue" ? event.queue : STATUS_AFTER[event.kind];
      // Right after it was submitted a task may be anything that waits; a list of those is told of it.
      if (token.name === "status" && event.kind === "task.submitted") return token.values.some((one) => ["ready", "pending", "blocked"].includes(one)) !== token.negated;
      return token.values.includes(value ?? "") !== token.negated;
    });
  const isNew = (event: Event) => event.kind === "task.submitted" || bornAt(event.id) >= readAt;
  return { isExact, mayEnter: (event) => event.kind.startsWith("task.") && !isGone(event.kind) && (hasStatus || isNew(event)) && fits(event) };
}

/** When a task was made, from its id, which begins with the time; 0 for an id of one's own. */
export function bornAt(id: string | null): number {
  if (!id || !/^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id)) return 0;
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
