import { describe, expect, it } from "vitest";
import type { TaskRow } from "../../api/types/tasks";
import { inZoneOfPage, reasonOf } from "./reasons";

const NOW = Date.parse("2026-11-18T05:00:00Z");

function row(fields: Partial<TaskRow>): TaskRow {
  return {
    id: "01a1ecf7-b33c-774f-82e3-75ca8a87d70c", type: "mail", queue: "default", priority: 5, status: "ready", attempt: 0, max_retry: 3,
    submitted_at: "2026-11-18T04:00:00Z", scheduled_at: "2026-11-18T04:00:00Z", started_at: null, finished_at: null, execution_time: null,
    worker_id: null, schedule_id: null, key: null, tags: {}, error: null, progress: null, held_by: null, cancelling: false, why: null, ...fields,
  };
}

describe("reasonOf", () => {
  it.each([
    [{ why: "Queue reports is paused since 2026-11-18T04:44:04Z: database move." }, "queue paused: database move"],
    [{ why: "Queue reports is paused." }, "queue paused"],
    [{ status: "blocked", why: "It waits for 01a1ecfa-6d8d-7146-ac29-890d9fdd427b." }, "waits for …9fdd427b"],
    [{ status: "pending", scheduled_at: "2026-11-18T05:47:00Z", why: "It waits for its time, 2026-11-18T05:47:00Z." }, "due 05:47:00, in 47 min"],
    [{ status: "retrying", scheduled_at: "2026-11-18T05:00:03Z", error: "timed out", why: "Attempt 1 failed (timed out)." }, "due in 3 s: timed out"],
    [{ status: "retrying", held_by: "breaker", why: "Breaker type:mail is open until 2026-11-18T05:13:12Z after 20 failures in a row (411 wait)." }, "breaker open until 05:13:12 (411 wait)"],
    [{ why: "The limit of type mail is reached: 3 of 3 run (5 wait)." }, "limit reached: 3 of 3 run (5 wait)"],
    [{ why: "It is ready; 36 tasks of its queue are before it." }, "36 tasks ahead"],
    [{ why: "All workers that may run it are busy; one task of its queue is before it." }, "workers busy, one task ahead"],
    [{ why: "All workers that may run it are busy." }, "workers busy"],
    [{ why: "No worker that is up on queue default knows task type nope." }, "no worker knows this type"],
    [{ why: "Breaker type:sweep was opened by root@vm at 2026-11-18T05:22:45Z: ui test." }, "breaker opened by root@vm: ui test"],
    [{ why: "Tag customer=initech was switched off by sam at 2026-11-18T04:44:04Z, until 2026-11-18T13:44:04Z: provider bill." }, "switched off by sam, until 13:44:04: provider bill"],
    [{ status: "dead", error: "GatewayTimeout: no answer" }, "GatewayTimeout: no answer"],
    [{ status: "running", worker_id: "web-1" }, "web-1"],
  ] as const)("%o", (fields, text) => {
    expect(reasonOf(row(fields as Partial<TaskRow>), "UTC", NOW)).toBe(text);
  });
});

describe("inZoneOfPage", () => {
  it("tells times of today by the clock, others by the date", () => {
    expect(inZoneOfPage("until 2026-11-18 04:44:04 UTC.", "Europe/Paris", NOW)).toBe("until 05:44:04.");
    expect(inZoneOfPage("until 2026-11-25T04:44:04Z.", "UTC", NOW)).toBe("until Wed 25 Nov 04:44.");
  });
});
