import type { Status } from "../../api/types";
import type { EventRow } from "../../api/types/events";
import type { Attempt, TaskView } from "../../api/types/tasks";
import type { Phase } from "../../components/Timeline";
import { plural } from "../../format/numbers";
import { toMillis } from "../../format/times";
import { STATUS_AFTER } from "../tasks/live";

/** A time in one status: what the diagram and the timeline are both drawn from. */
export interface Stay {
  status: Status;
  from: number;
  /** Null for the one that goes on. */
  to: number | null;
  /** What began it. */
  event: EventRow | null;
  attempt: number;
  workerId: string;
  /** A limit, breaker or switch held it, or nobody could run it. */
  heldBy: string;
}

const ENDED: ReadonlySet<Status> = new Set(["success", "failed", "dead", "cancelled"]);

/** What a task waited for before an event that ends a wait. */
function statusBefore(next: EventRow | undefined, task: TaskView): Status {
  if (!next) return task.status;
  if (next.kind === "task.due" || next.kind === "task.hastened") return "pending";
  if (next.kind === "task.resolved") return "blocked";
  return next.kind === "task.rescheduled" && toMillis(task.scheduled_at) > toMillis(task.submitted_at) ? "pending" : "ready";
}

function statusAfter(event: EventRow, next: EventRow | undefined, task: TaskView, before: Status): Status {
  if (event.kind === "task.submitted" || event.kind === "task.resolved" || event.kind === "task.retried") return statusBefore(next, task);
  if (event.kind === "task.held") return next ? "ready" : task.status;
  return STATUS_AFTER[event.kind] ?? before;
}

/** "limit:type:mail" in words: "limit of type mail". */
function gateInWords(gate: string): string {
  const [kind = "", of = "", ...name] = gate.split(":");
  return name.length > 0 ? `${kind} of ${of} ${name.join(":")}` : gate;
}

/** The log may have lost the beginning; then the record's own attempts are all there is. */
export function isWhole(events: readonly EventRow[]): boolean {
  return events[0]?.kind === "task.submitted";
}

/** Each status that a task has been in, with its time, from the facts of the log. */
export function staysFromEvents(task: TaskView, events: readonly EventRow[]): Stay[] {
  const stays: Stay[] = [];
  for (const [at, event] of events.entries()) {
    if (event.kind === "task.cancel_asked") continue;
    // It was taken, and a gate did not let it begin: that was no run.
    if (event.kind === "task.held" && stays.at(-1)?.status === "running") stays.pop();
    const last = stays.at(-1);
    const status = statusAfter(event, events[at + 1], task, last?.status ?? "ready");
    const heldBy = event.kind === "task.held" ? gateInWords(event.detail) : event.kind === "task.parked" ? "no worker could run it" : "";
    const from = toMillis(event.at);
    if (last && last.status === status && last.heldBy === heldBy && status !== "running") continue;
    if (last) last.to = from;
    stays.push({ status, from, to: null, event, attempt: event.attempt, workerId: event.worker_id, heldBy });
  }
  const last = stays.at(-1);
  // Facts come a moment after the record: what it says now stands.
  if (last && last.status !== task.status && !task.held_by) stays.push({ ...last, status: task.status, from: last.to ?? lastKnown(task), event: null, heldBy: "" });
  return stays;
}

function lastKnown(task: TaskView): number {
  return toMillis(task.finished_at ?? task.started_at ?? task.submitted_at);
}

/** The runs of a task, its last one included. */
export function runsOf(task: TaskView): Attempt[] {
  const { started_at: started } = task;
  if (!started || task.attempts.some((run) => run.started_at === started)) return task.attempts;
  if (task.status === "assigned" || (task.status === "ready" && task.execution_time === null)) return task.attempts;
  const ended = task.finished_at ?? (task.execution_time === null ? started : new Date(toMillis(started) + task.execution_time * 1000).toISOString());
  const end = task.status === "retrying" || task.status === "ready" || task.status === "pending" ? (task.last_error ? "failed" : "snoozed") : task.status;
  return [...task.attempts, { number: task.attempt, started_at: started, finished_at: ended, worker_id: task.worker_id ?? "", end, duration: task.execution_time, error: task.last_error }];
}

/** The same from the record alone: its runs, and what lies between them. */
export function staysFromRuns(task: TaskView): Stay[] {
  const stays: Stay[] = [];
  const add = (status: Status, from: number, to: number | null, run?: Attempt) => {
    stays.push({ status, from, to, event: null, attempt: run?.number ?? 0, workerId: run?.worker_id ?? "", heldBy: "" });
  };
  let at = toMillis(task.submitted_at);
  for (const [place, run] of runsOf(task).entries()) {
    const began = toMillis(run.started_at);
    const due = place === 0 && runsOf(task).length === 1 ? toMillis(task.scheduled_at) : 0;
    if (place > 0) add("retrying", at, began);
    else if (due > at && due <= began) {
      add("pending", at, due);
      add("ready", due, began);
    } else add("ready", at, began);
    const isLast = place === runsOf(task).length - 1;
    at = isLast && task.status === "running" ? Number.NaN : toMillis(run.finished_at);
    add("running", began, Number.isNaN(at) ? null : at, run);
  }
  if (task.status !== "running") add(task.status, at, ENDED.has(task.status) ? at : null);
  return stays;
}

export function staysOf(task: TaskView, events: readonly EventRow[]): Stay[] {
  return isWhole(events) ? staysFromEvents(task, events) : staysFromRuns(task);
}

export function pathOfStays(stays: readonly Stay[]): Status[] {
  const path: Status[] = [];
  for (const stay of stays) if (path.at(-1) !== stay.status || stay.status === "running") path.push(stay.status);
  return path;
}

const MOMENT = 50;
const KIND: Readonly<Partial<Record<Status, Phase["kind"]>>> = { pending: "delay", blocked: "delay", ready: "queued", assigned: "queued", running: "attempt", retrying: "backoff" };

interface Told {
  task: TaskView;
  now: number;
  /** Why it waits now, where it is held: told of the last phase. */
  heldNow: string | null;
}

function statusOfRun(run: Attempt | undefined, isOver: boolean): Status {
  if (!isOver) return "running";
  if (!run) return "success";
  if (run.end === "snoozed") return "pending";
  if (run.end === "lost") return "retrying";
  return run.end === "success" || run.end === "cancelled" || run.end === "dead" ? (run.end === "dead" ? "failed" : run.end) : "failed";
}

function firstLine(text: string | null | undefined): string {
  return text?.split("\n", 1)[0] ?? "";
}

function attemptPhase(stay: Stay, { task, now }: Told): Phase {
  const runs = runsOf(task);
  const run = runs.find((one) => Math.abs(toMillis(one.started_at) - stay.from) < 2 && one.number === stay.attempt) ?? runs.find((one) => one.number === stay.attempt);
  const status = statusOfRun(run, stay.to !== null);
  const error = status === "failed" ? firstLine(run?.error) : status === "pending" ? "snoozed" : status === "retrying" ? "its worker was lost" : "";
  const kind = error.includes(":") ? error.slice(0, error.indexOf(":")) : error;
  const where = stay.workerId ? `on ${stay.workerId}` : "";
  const seconds = run?.duration && stay.to !== null ? run.duration : ((stay.to ?? now) - stay.from) / 1000;
  return { kind: "attempt", attempt: stay.attempt, from: stay.from, seconds, status, reason: [kind, where].filter(Boolean).join(", ") };
}

function reasonOfWait(stay: Stay, task: TaskView): string {
  if (stay.heldBy) return stay.heldBy;
  if (stay.status === "blocked") return `for ${plural(task.depends_on.length, "task")} before it`;
  if (stay.status === "retrying") return task.max_retry === null ? `after attempt ${stay.attempt}` : `retry ${stay.attempt} of ${task.max_retry}`;
  if (stay.status === "assigned") return stay.workerId ? `in the inbox of ${stay.workerId}` : "";
  if (stay.status === "pending") return stay.event?.kind === "task.snoozed" ? firstLine(stay.event.detail) || "snoozed" : "until its time";
  return stay.status === "ready" ? `in ${task.queue}` : "";
}

/** The rows of "Where the time went". The end itself takes no time and has none. */
export function phasesOf(stays: readonly Stay[], told: Told): Phase[] {
  const phases: Phase[] = [];
  for (const [at, stay] of stays.entries()) {
    const kind = KIND[stay.status];
    if (!kind) continue;
    if (kind === "attempt") {
      phases.push(attemptPhase(stay, told));
      continue;
    }
    const isNow = stay.to === null;
    // A moment between two phases is not where the time went.
    const isFirstWait = phases.length === 0 && stays[at + 1]?.status === "running";
    if (!isNow && !isFirstWait && (stay.to ?? 0) - stay.from < MOMENT) continue;
    const isHeld = stay.heldBy !== "" || (isNow && told.heldNow !== null && stay.status !== "blocked");
    const seconds = Math.max(0, ((stay.to ?? told.now) - stay.from) / 1000);
    const reason = isNow && told.heldNow ? told.heldNow : reasonOfWait(stay, told.task);
    const label = stay.status === "blocked" || stay.status === "assigned" ? { label: stay.status, status: stay.status } : {};
    phases.push({ kind: isHeld ? "held" : kind, from: stay.from, seconds, reason, ...label });
  }
  return phases;
}
