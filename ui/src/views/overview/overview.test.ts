import { describe, expect, it } from "vitest";
import type { QueueRow } from "../../api/types/queues";
import type { SeriesLine, SeriesView } from "../../api/types/reports";
import { drainsIn, heldOf, isBehind, isShut, openOf, sentenceOf, toneOf } from "../queues/state";
import { queuesOf, signatureOf } from "../queues/signature";
import { changeOf, compareRows } from "../reports/compare";
import { before, periodOf } from "../reports/period";
import { drawSeries, sumSeries, versionMarks } from "./series";
import { placeOf } from "./words";

const queue = (change: Partial<QueueRow>): QueueRow => ({
  name: "media", ready: 0, running: 0, high: 0, normal: 0, low: 0, parked: {}, workers: 1, slots: 8, paused: false, note: "", paused_at: null,
  waiting_since: null, latency: null, in_rate: 0, out_rate: 0, failure_rate: null, done: [], holds: [], ...change,
});

describe("a row that wants to be looked at", () => {
  it("leads to its place, whatever its name", () => {
    const row = { level: "heal", kind: "breaker", title: "", text: "", at: null, link: "limits/breakers/target:http/a b" } as const;
    expect(placeOf(row)).toBe("limits/breakers/target%3Ahttp%2Fa%20b");
    expect(placeOf({ ...row, kind: "schedule", link: "schedules/a/b" })).toBe("schedules/a%2Fb");
    expect(placeOf({ ...row, kind: "alert", link: "alerts" })).toBe("alerts");
  });
});

describe("a queue", () => {
  it("holds everything while it is paused", () => {
    expect([openOf(queue({ ready: 9, paused: true })), heldOf(queue({ ready: 9, paused: true }))]).toEqual([0, 9]);
  });
  it("tells what is parked apart from what is late", () => {
    const one = queue({ ready: 9, parked: { nope: 4 } });
    expect([openOf(one), heldOf(one)]).toEqual([5, 4]);
  });
  it("counts what waits at limits, breakers and switches beside what is ready", () => {
    const one = queue({ ready: 9, parked: { nope: 4 }, holds: [{ by: "limit", of: "type:a", waiting: 3 }, { by: "switch", of: "type:b", waiting: null }] });
    expect([openOf(one), heldOf(one), isShut(one), toneOf(one)]).toEqual([5, 7, true, "heal"]);
    expect(sentenceOf(one)).toContain("3 wait at limit type:a. Some wait at switch type:b.");
    expect(sentenceOf(queue({ holds: [{ by: "breaker", of: "type:b", waiting: 1 }] }))).toBe("1 waits at breaker type:b.");
  });
  it("is behind only if something waits and clearly more comes in", () => {
    expect(isBehind(queue({ ready: 37, in_rate: 212, out_rate: 180 }))).toBe(true);
    expect(isBehind(queue({ ready: 37, in_rate: 212, out_rate: 210 }))).toBe(false);
    expect(isBehind(queue({ ready: 0, in_rate: 212, out_rate: 100 }))).toBe(false);
  });
  it("drains at the rate that it gains", () => {
    expect(drainsIn(queue({ ready: 30, in_rate: 10, out_rate: 40 }))).toBe(60);
    expect(drainsIn(queue({ ready: 30, in_rate: 40, out_rate: 40 }))).toBeNull();
  });
});

const line = (counts: number[]): SeriesLine => {
  const none = counts.map(() => 0);
  const times = counts.map(() => null);
  return { name: "", submitted: counts, started: counts, success: counts, failed: none, dead: none, cancelled: none, retries: none, losses: none, wait: times, run: times };
};

describe("a series", () => {
  const at = (minute: number) => new Date(minute * 60_000).toISOString();
  it("leaves out the minute that is not over", () => {
    const view: SeriesView = { grain: "minute", times: [at(0), at(1), at(2)], lines: [line([10, 20, 3])] };
    expect(drawSeries(view, "", 2.1 * 60_000).done).toEqual([10, 20]);
    expect(sumSeries(view, "").submitted).toBe(33);
  });
  it("draws an hour that is not over with its rate so far", () => {
    const view: SeriesView = { grain: "hour", times: [at(0), at(60)], lines: [line([60, 60])] };
    expect(drawSeries(view, "", 90 * 60_000).done).toEqual([1, 2]);
  });
  it("has zeros for a name that did nothing", () => {
    expect(drawSeries({ grain: "minute", times: [at(0), at(1)], lines: [] }, "x", 0).done).toEqual([0]);
  });
  it("marks a version only if it replaced another", () => {
    const worker = (version: string, minute: number) => ({ version, started_at: at(minute) });
    expect(versionMarks([worker("1", 1), worker("1", 5)])).toEqual([]);
    expect(versionMarks([worker("1", 1), worker("2", 5), worker("2", 3)])).toEqual([{ at: 3 * 60_000, label: "version 2" }]);
  });
});

describe("a type", () => {
  it("has a signature from its schema", () => {
    const schema = { $ref: "#/$defs/p", $defs: { p: { type: "object", properties: { to: { type: "string" }, tries: { type: "integer", default: 3 } }, required: ["to"] } } };
    expect(signatureOf("mail", schema)).toBe("mail(to: str, tries: int = 3)");
    expect(signatureOf("mail", null)).toBe("mail");
  });
  it("goes to the queues in which it was seen", () => {
    expect(queuesOf({ seen_in: ["email", "bulk"], options: {} })).toEqual(["email", "bulk"]);
    expect(queuesOf({ seen_in: ["bulk"], options: { queue: "email" } })).toEqual(["bulk"]);
  });
  it("goes to its own queue, or to the default one, if it was seen in none", () => {
    expect(queuesOf({ seen_in: [], options: { queue: "email" } })).toEqual(["email"]);
    expect(queuesOf({ seen_in: [], options: {} })).toEqual(["default"]);
  });
});

describe("a report", () => {
  it("compares with as long a time before", () => {
    const period = periodOf("24h", "", 86_400_000 * 10);
    expect([period.since, before(period).since]).toEqual([86_400_000 * 9, 86_400_000 * 8]);
  });
  it("falls back to a week for what cannot be read", () => {
    expect(periodOf("nonsense", "", 86_400_000 * 10).since).toBe(86_400_000 * 3);
  });
  it("names only notable changes", () => {
    expect([changeOf(2, 1), changeOf(1, 2), changeOf(1.05, 1), changeOf(0.002, 0.001), changeOf(undefined, 1)]).toEqual(["slower", "faster", null, null, null]);
  });
  it("finds the row before by name", () => {
    const row = (name: string, submitted: number) => ({ name, at: null, submitted, started: 0, success: 0, failed: 0, dead: 0, cancelled: 0, retries: 0, losses: 0, snoozes: 0, failure_rate: null, wait: null, run: null, missed: 0 });
    const report = (names: string[], submitted: number) => ({ since: "", until: "", by: "type", rows: names.map((name) => row(name, submitted)), total: row("total", submitted), through: null });
    const compared = compareRows(report(["a", "b"], 2), report(["b"], 1));
    expect(compared.map((one) => one.before?.submitted ?? null)).toEqual([null, 1]);
  });
});
