import { describe, expect, it } from "vitest";
import type { Event } from "../../api/types";
import type { BulkRun, TaskPage, TaskRow } from "../../api/types/tasks";
import { asJson, type Collected, collectTasks, FILE_MOST, PAGE_MOST } from "./collect";
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

describe("collectTasks", () => {
  const rows = (from: number, count: number) => Array.from({ length: count }, (_, at) => ({ id: String(from + at) }) as TaskRow);
  const page = (items: TaskRow[], cursor: string | null, total: number | null = null): TaskPage => ({ items, cursor, looked: items.length, total });
  /** Answers these pages, one after the other, and notes what was asked. */
  const reading = (pages: TaskPage[]) => {
    const asked: [number, string | null][] = [];
    const read = (limit: number, cursor: string | null) => {
      asked.push([limit, cursor]);
      return Promise.resolve(pages[asked.length - 1] ?? page([], null));
    };
    return { asked, read };
  };
  it("goes on after short and empty pages, to the end", async () => {
    const { asked, read } = reading([page(rows(0, 2), "a"), page([], "b"), page(rows(2, 1), null)]);
    const told: number[] = [];
    const found = await collectTasks(read, (sofar) => told.push(sofar.rows.length));
    expect(asked).toEqual([[PAGE_MOST, null], [PAGE_MOST, "a"], [PAGE_MOST, "b"]]);
    expect(found.rows.map((row) => row.id)).toEqual(["0", "1", "2"]);
    expect([found.isCut, found.looked, told]).toEqual([false, 3, [2, 2]]);
  });
  it("writes one that comes again only once", async () => {
    const { read } = reading([page(rows(0, 3), "a"), page(rows(2, 2), null)]);
    expect((await collectTasks(read, () => undefined)).rows).toHaveLength(4);
  });
  it("stops at what a file holds, and says whether there may be more", async () => {
    const full = (last: string | null) => Array.from({ length: FILE_MOST / PAGE_MOST }, (_, at) => page(rows(at * PAGE_MOST, PAGE_MOST), (at + 1) * PAGE_MOST === FILE_MOST ? last : String(at), 953_434));
    const sofar: Collected[] = [];
    const cut = await collectTasks(reading(full("more")).read, (one) => sofar.push(one));
    expect([cut.rows.length, cut.isCut, sofar[0]?.total]).toEqual([FILE_MOST, true, FILE_MOST]);
    const whole = await collectTasks(reading(full(null)).read, () => undefined);
    expect([whole.rows.length, whole.isCut]).toEqual([FILE_MOST, false]);
  });
  it("asks for no more than there is room for", async () => {
    const { asked, read } = reading([...Array.from({ length: 20 }, (_, at) => page(rows(at * 499, 499), String(at))), page(rows(9980, 20), "x")]);
    await collectTasks(read, () => undefined);
    expect(asked.at(-1)).toEqual([20, "19"]);
  });
  it("writes JSON that can be read, a line a task", () => {
    expect(JSON.parse(asJson([]))).toEqual([]);
    expect(asJson(rows(0, 2))).toBe('[\n{"id":"0"},\n{"id":"1"}\n]\n');
  });
});
