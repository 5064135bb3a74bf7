import { describe, expect, it } from "vitest";
import { clockChangeText, isFixedLine, offsetAt } from "./clocks";
import { dayOf, weeksOf } from "./weeks";

const HOUR = 3_600_000;
const at = (text: string) => Date.parse(text);

describe("clocks", () => {
  it("knows how far a zone is ahead", () => {
    expect(offsetAt(at("2026-07-01T00:00:00Z"), "Europe/Paris")).toBe(2 * HOUR);
    expect(offsetAt(at("2026-12-01T00:00:00Z"), "Europe/Paris")).toBe(HOUR);
    expect(offsetAt(at("2026-12-01T00:00:00Z"), "Asia/Kathmandu")).toBe(5.75 * HOUR);
  });
  it("tells when clocks are set", () => {
    expect(clockChangeText(at("2026-10-24T06:00:00Z"), at("2026-10-25T06:00:00Z"), "Europe/Paris")).toBe("Clocks go back on Sunday at 03:00.");
    expect(clockChangeText(at("2026-03-28T06:00:00Z"), at("2026-03-29T06:00:00Z"), "Europe/Paris")).toBe("Clocks go forward on Sunday at 02:00.");
    expect(clockChangeText(at("2026-06-01T00:00:00Z"), at("2026-06-02T00:00:00Z"), "Europe/Paris")).toBe("");
  });
  it("knows lines that follow real time", () => {
    expect(["0 2 * * *", "30 0 2 * * *", "TZ=Europe/Paris 0 2 * * 1", "@daily"].map(isFixedLine)).toEqual([true, true, true, true]);
    expect(["*/5 2 * * *", "0 * * * *", "0 */5 * * * *", "@hourly", "CRON_TZ=UTC 5 * * * *"].map(isFixedLine)).toEqual([false, false, false, false, false]);
  });
});

describe("weeksOf", () => {
  const run = (text: string, outcome: "success" | "dead" | "missed") => ({ at: text, outcome, task_id: null, late: null, duration: null, count: 1 });
  const made = weeksOf({
    runs: [run("2026-11-18T01:00:00Z", "success"), run("2026-11-17T01:00:00Z", "dead"), run("2026-11-16T01:00:00Z", "missed")],
    next: [{ at: "2026-11-19T01:00:00Z", local: "", mark: "" }],
    mostRuns: 60,
    mostNext: 100,
    now: at("2026-11-18T05:00:00Z"),
    zone: "Europe/Paris",
  });
  const cell = (day: string) => made.weeks.flat().find((one) => one.day === dayOf(at(day), "Europe/Paris"));

  it("has eight weeks from Monday to Sunday", () => {
    expect(made.weeks.map((week) => week.length)).toEqual(Array(8).fill(7));
    expect(made.weeks[5]?.[2]?.isToday).toBe(true);
  });
  it("says what came of each day, and what is not known", () => {
    expect(cell("2026-11-18T12:00:00Z")?.kind).toBe("good");
    expect(cell("2026-11-17T12:00:00Z")?.kind).toBe("bad");
    expect(cell("2026-11-16T12:00:00Z")?.kind).toBe("skipped");
    expect(cell("2026-11-19T12:00:00Z")?.kind).toBe("planned");
    expect(cell("2026-11-20T12:00:00Z")?.kind).toBe("none");
    expect(cell("2026-11-10T12:00:00Z")?.kind).toBe("unknown");
  });
});
