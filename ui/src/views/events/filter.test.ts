import { describe, expect, it } from "vitest";
import type { EventRow } from "../../api/types/events";
import { fits, readFilter, writeFilter } from "./filter";

const FACT: EventRow = { seq: 7, at: "2026-10-25T03:07:12Z", kind: "task.died", id: "a", type: "charge", queue: "payments", worker_id: "w", attempt: 2, duration: 1, detail: "" };

describe("readFilter", () => {
  it("reads one value of each name", () => {
    expect(readFilter('kind:task.died type:"two words" worker:w-1')).toEqual({ filter: { kind: "task.died", type: "two words", worker: "w-1" }, mistake: null });
  });
  it("guesses what a bare word is", () => {
    expect(readFilter("worker.lost").filter).toEqual({ kind: "worker.lost" });
    expect(readFilter("01a1ecfa-4a0f-7453-a3f2-36fb540db8c6").filter).toEqual({ id: "01a1ecfa-4a0f-7453-a3f2-36fb540db8c6" });
    expect(readFilter("send_email").filter).toEqual({ type: "send_email" });
  });
  it("says what the log cannot be asked for", () => {
    expect(readFilter("-kind:task").mistake).toContain("not for what it is not");
    expect(readFilter("kind:task,worker").mistake).toContain("one kind at a time");
    expect(readFilter("type:a type:b")).toEqual({ filter: { type: "a" }, mistake: "There are two of type; the log can be asked for one at a time." });
  });
  it("writes what it reads", () => {
    const filter = { kind: "task", id: 'a "b", c', type: "x" };
    expect(readFilter(writeFilter(filter)).filter).toEqual(filter);
  });
});

describe("fits", () => {
  it.each([
    [{}, true],
    [{ kind: "task" }, true],
    [{ kind: "task.died" }, true],
    [{ kind: "task.die" }, false],
    [{ kind: "worker" }, false],
    [{ id: "a", type: "charge", worker: "w" }, true],
    [{ id: "b" }, false],
    [{ worker: "other" }, false],
  ])("%o: %s", (filter, expected) => {
    expect(fits(FACT, filter)).toBe(expected);
  });
});
