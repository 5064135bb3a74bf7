import { describe, expect, it } from "vitest";
import type { EventRow } from "../../api/types/events";
import type { TaskView } from "../../api/types/tasks";
import { pathOfStays, phasesOf, runsOf, staysOf } from "./history";

const START = Date.parse("2026-11-18T04:00:00Z");

function iso(seconds: number): string {
  return new Date(START + seconds * 1000).toISOString();
}

function task(fields: Partial<TaskView>): TaskView {
  return {
    id: "a", type: "charge", queue: "payments", priority: 5, status: "ready", attempt: 0, max_retry: 2, submitted_at: iso(0), scheduled_at: iso(0), started_at: null,
    finished_at: null, execution_time: null, worker_id: null, schedule_id: null, key: null, tags: {}, error: null, progress: null, held_by: null, cancelling: false,
    why: null, payload: null, payload_bytes: 0, context: {}, result: null, result_code: null, result_message: "", last_error: null, retry_count: 0, losses: 0,
    progress_note: "", depends_on: [], waiting_for: [], timeout: null, retry: null, dedup_key: null, dedup_ttl: null, unique: null, expires_at: null, retention: null,
    serializer: "json", executor: "local", target: null, requires: {}, attempts: [], log: [], large: [], masked: false, ...fields,
  };
}

let seq = 0;
function fact(kind: string, at: number, fields: Partial<EventRow> = {}): EventRow {
  seq += 1;
  return { seq, at: iso(at), kind: `task.${kind}`, id: "a", type: "charge", queue: "payments", worker_id: "", attempt: 0, duration: 0, detail: "", ...fields };
}

const DEAD = task({
  status: "dead", attempt: 2, started_at: iso(16), finished_at: iso(26), execution_time: 10, worker_id: "w", last_error: "Timeout: late\nTraceback",
  attempts: [{ number: 1, started_at: iso(1), finished_at: iso(11), worker_id: "w", end: "failed", duration: 10, error: "Timeout: late" }],
});
const FACTS = [fact("submitted", 0), fact("claimed", 1, { attempt: 1, worker_id: "w" }), fact("retrying", 11, { attempt: 1 }), fact("due", 16, { attempt: 1 }), fact("claimed", 16, { attempt: 2, worker_id: "w" }), fact("died", 26, { attempt: 2 })];

describe("history of a task", () => {
  it("is the path through the states", () => {
    expect(pathOfStays(staysOf(DEAD, FACTS))).toEqual(["ready", "running", "retrying", "ready", "running", "dead"]);
  });
  it("is where the time went", () => {
    const phases = phasesOf(staysOf(DEAD, FACTS), { task: DEAD, now: START + 60_000, heldNow: null });
    expect(phases.map(({ kind, seconds, reason, status }) => [kind, seconds, reason, status])).toEqual([
      ["queued", 1, "in payments", undefined],
      ["attempt", 10, "Timeout, on w", "failed"],
      ["backoff", 5, "retry 1 of 2", undefined],
      ["attempt", 10, "Timeout, on w", "failed"],
    ]);
  });
  it("comes from the runs where the log has lost it", () => {
    expect(pathOfStays(staysOf(DEAD, FACTS.slice(2)))).toEqual(["ready", "running", "retrying", "running", "dead"]);
    expect(runsOf(DEAD).map((run) => [run.number, run.end])).toEqual([[1, "failed"], [2, "dead"]]);
  });
  it("tells of a delay and of what holds it now", () => {
    const waiting = task({ status: "pending", scheduled_at: iso(600) });
    expect(phasesOf(staysOf(waiting, [fact("submitted", 0)]), { task: waiting, now: START + 30_000, heldNow: null })).toMatchObject([{ kind: "delay", seconds: 30, reason: "until its time" }]);
    const ready = task({});
    expect(phasesOf(staysOf(ready, [fact("submitted", 0)]), { task: ready, now: START + 30_000, heldNow: "queue paused" })).toMatchObject([{ kind: "held", seconds: 30, reason: "queue paused" }]);
  });
  it("tells of a gate that did not let it begin", () => {
    const done = task({ status: "success", attempt: 1, started_at: iso(9), finished_at: iso(11), execution_time: 2, worker_id: "w" });
    const facts = [fact("submitted", 0), fact("claimed", 1, { attempt: 1 }), fact("held", 1, { detail: "limit:type:charge" }), fact("hastened", 9), fact("claimed", 9, { attempt: 1, worker_id: "w" }), fact("succeeded", 11, { attempt: 1 })];
    const phases = phasesOf(staysOf(done, facts), { task: done, now: START + 60_000, heldNow: null });
    expect(phases.map(({ kind, seconds, reason }) => [kind, seconds, reason])).toEqual([["queued", 1, "in payments"], ["held", 8, "limit of type charge"], ["attempt", 2, "on w"]]);
  });
  it("draws a run that goes on, and a snooze as a wait", () => {
    const running = task({ status: "running", attempt: 1, started_at: iso(2), worker_id: "w" });
    const stays = staysOf(running, [fact("submitted", 0), fact("claimed", 2, { attempt: 1, worker_id: "w" })]);
    expect(phasesOf(stays, { task: running, now: START + 12_000, heldNow: null }).at(-1)).toMatchObject({ kind: "attempt", status: "running", seconds: 10 });
    const snoozed = task({ status: "pending", attempt: 1, started_at: iso(2), execution_time: 1, worker_id: "w", scheduled_at: iso(100) });
    const path = pathOfStays(staysOf(snoozed, [fact("submitted", 0), fact("claimed", 2, { attempt: 1 }), fact("snoozed", 3, { attempt: 1 })]));
    expect(path).toEqual(["ready", "running", "pending"]);
  });
});
