import { describe, expect, it } from "vitest";
import type { Event } from "../../api/types";
import type { BulkRun } from "../../api/types/tasks";
import { idFilters } from "./ids";
import { bornAt, judgeOf } from "./live";
import { outcomeText } from "./verbs";
import { filterInWords } from "./words";

function event(fields: Partial<Event>): Event {
  return { seq: 1, at: "2026-11-18T05:00:00Z", kind: "task.submitted", id: "a", type: "mail", queue: "default", worker_id: "", attempt: 0, duration: 0, detail: "", ...fields };
}

describe("filterInWords", () => {
  it.each([
    ["type:charge_payment waits:breaker", "of type charge_payment that wait for a breaker"],
    ["status:dead,failed queue:mail", "that are dead or failed and are of queue mail"],
    ["-status:success submitted<1h", "that are not success and were submitted within the last 1h"],
    ["run>10s tag.env:prod", "that run longer than 10s and have the tag env=prod"],
    ["", ""],
  ])("%s", (filter, words) => expect(filterInWords(filter)).toBe(words));
});

describe("idFilters", () => {
  it("keeps to what one filter may hold", () => {
    const ids = Array.from({ length: 100 }, (_, at) => `01a1ecf7-b33c-774f-82e3-${String(at).padStart(12, "0")}`);
    const filters = idFilters(ids);
    expect(filters.every((filter) => filter.length <= 2000)).toBe(true);
    expect(filters.join(" ").split(/[ ,:]/).filter((part) => part.startsWith("01a1"))).toEqual(ids);
    expect(idFilters([])).toEqual([]);
  });
});

describe("judgeOf", () => {
  it("counts only new tasks where no status is asked for", () => {
    const judge = judgeOf("type:mail", 1000);
    expect(judge.isExact).toBe(true);
    expect(judge.mayEnter(event({}))).toBe(true);
    expect(judge.mayEnter(event({ type: "other" }))).toBe(false);
    expect(judge.mayEnter(event({ kind: "task.succeeded" }))).toBe(false);
    expect(judge.mayEnter(event({ kind: "task.succeeded", id: "01a1ecf7-b33c-774f-82e3-75ca8a87d70c" }))).toBe(true);
  });
  it("follows the status", () => {
    const judge = judgeOf("status:dead key:acme", 0);
    expect(judge.isExact).toBe(false);
    expect(judge.mayEnter(event({ kind: "task.died" }))).toBe(true);
    expect(judge.mayEnter(event({ kind: "task.claimed" }))).toBe(false);
    expect(judge.mayEnter(event({}))).toBe(false);
  });
  it("reads the time from an id", () => {
    expect(new Date(bornAt("01a1ecfa-9ac8-728f-8f9e-5b6927f20368")).toISOString()).toBe("2026-11-18T04:46:49.032Z");
    expect(bornAt("close_day@2026")).toBe(0);
  });
});

describe("outcomeText", () => {
  const run = (fields: Partial<BulkRun>): BulkRun => ({ id: "r", action: "reschedule", filter: "", state: "done", done: 0, refused: 0, expected: 0, errors: [], began_at: "", ended_at: null, ...fields });
  it("tells of every refusal, of a reschedule too", () => {
    expect(outcomeText("reschedule", [run({ done: 5, refused: 2, errors: ["a is running."] })])).toBe("5 rescheduled, 2 could not be. a is running.");
    expect(outcomeText("cancel", [run({ done: 409, refused: 3 })])).toBe("409 cancelled, 3 could not be.");
    expect(outcomeText("reschedule", [run({ done: 5 })])).toBe("5 rescheduled.");
  });
  it("adds up the parts, and says where one broke off", () => {
    expect(outcomeText("retry", [run({ done: 1_000, refused: 1 }), run({ done: 204, refused: 1, state: "failed" })])).toBe("1,204 sent back to run, 2 could not be. It could not be finished.");
    expect(outcomeText("delete", [run({ done: 3, state: "stopped" })])).toBe("3 deleted. It was stopped.");
  });
});
