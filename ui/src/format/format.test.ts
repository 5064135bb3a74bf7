import { describe, expect, it } from "vitest";
import { tidyCron } from "./cron";
import { durationMeasure, formatDuration, formatSpan, parseDuration } from "./durations";
import { priorityName, shortId } from "./ids";
import { formatBounded, formatBytes, formatCount, formatFigure, formatPercent, formatRate, plural } from "./numbers";
import { formatAge, formatClockMillis, formatDate, formatExact, formatNear, formatRelative, toMillis, zoneAbbreviation } from "./times";

describe("numbers", () => {
  it("are exact, with commas", () => {
    expect(formatCount(1204)).toBe("1,204");
    expect(formatCount(953434)).toBe("953,434");
    expect(formatBounded(10000, true)).toBe("at least 10,000");
    expect(plural(1, "task")).toBe("1 task");
    expect(plural(412, "task")).toBe("412 tasks");
  });
  it("have three figures as measured values", () => {
    expect(formatFigure(28.83)).toBe("28.8");
    expect(formatFigure(0.0421)).toBe("0.042");
    expect(formatFigure(1790.4)).toBe("1,790");
    expect(formatFigure(99.97)).toBe("100");
    expect(formatFigure(0)).toBe("0");
  });
  it("never round a share up to all or down to none", () => {
    expect(formatPercent(0.9996)).toBe("99.96 %");
    expect(formatPercent(0.999999)).toBe("above 99.99 %");
    expect(formatPercent(1)).toBe("100 %");
    expect(formatPercent(0.38)).toBe("38 %");
    expect(formatPercent(0.0412)).toBe("4.1 %");
  });
  it("choose the unit of a rate and of bytes", () => {
    expect(formatRate(28.8)).toBe("28.8/s");
    expect(formatRate(7 / 60)).toBe("7/min");
    expect(formatRate(2 / 3600)).toBe("2/h");
    expect(formatBytes(214)).toBe("214 B");
    expect(formatBytes(1_258_291)).toBe("1.3 MB");
    expect(formatBytes(312_000_000)).toBe("312 MB");
  });
});

describe("durations", () => {
  it.each([
    [0, "0 s"],
    [0.0004, "0.40 ms"],
    [0.0042, "4.2 ms"],
    [0.021, "0.021 s"],
    [0.0996, "0.10 s"],
    [0.52, "0.52 s"],
    [0.999, "1.0 s"],
    [9.1, "9.1 s"],
    [9.94, "9.9 s"],
    [9.97, "10 s"],
    [41.4, "41 s"],
    [59.7, "1 min 00 s"],
    [328, "5 min 28 s"],
    [3840, "1 h 04 min"],
    [273600, "3 d 04 h"],
    [-9.1, "-9.1 s"],
  ])("%d s reads %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
  it("are coarse when told relative to now", () => {
    expect(formatSpan(41.9)).toBe("41 s");
    expect(formatSpan(2460)).toBe("41 min");
    expect(formatSpan(82020)).toBe("22 h 47 min");
  });
  it("split into figure and unit", () => {
    expect(durationMeasure(0.52)).toEqual({ figure: "0.52", unit: "s" });
    expect(durationMeasure(328)).toEqual({ figure: "5 min 28 s", unit: "" });
  });
  it("are read as typed", () => {
    expect(parseDuration("10s")).toBe(10);
    expect(parseDuration("1.5 h")).toBe(5400);
    expect(parseDuration("soon")).toBeNull();
  });
});

describe("times", () => {
  const at = Date.parse("2026-10-24T01:12:40.123Z");
  const zone = "Europe/Paris";
  it("show zone and UTC when exact", () => {
    expect(formatExact(at, zone)).toBe("Sat 24 Oct 2026, 03:12:40.123 CEST · 01:12:40.123 UTC");
    expect(formatExact(at, "UTC")).toBe("Sat 24 Oct 2026, 01:12:40.123 UTC");
    expect(formatExact(Date.parse("2026-10-24T23:30:00Z"), zone)).toBe("Sun 25 Oct 2026, 01:30:00.000 CEST · Sat 24 Oct, 23:30:00.000 UTC");
  });
  it("name zones as people do", () => {
    expect(zoneAbbreviation(at, zone)).toBe("CEST");
    expect(zoneAbbreviation(Date.parse("2026-12-24T01:12:40Z"), zone)).toBe("CET");
    expect(zoneAbbreviation(at, "America/New_York")).toBe("EDT");
  });
  it("are relative within a day", () => {
    expect(formatRelative(at - 360_000, at, zone)).toBe("6 min ago");
    expect(formatRelative(at + 82_020_000, at, zone)).toBe("in 22 h 47 min");
    expect(formatRelative(at - 90_000_000, at, zone)).toBe("Fri 23 Oct 02:12");
    expect(formatAge(at - 41_000, at, zone)).toBe("41 s");
    expect(formatDate(Date.parse("2025-09-01T00:00:00Z"), "UTC", at)).toBe("Mon 1 Sep 2025 00:00");
  });
  it("are short near now", () => {
    expect(formatNear(at - 360_000, at, zone)).toBe("03:06");
    expect(formatNear(at - 20_000_000, at, zone)).toBe("Fri 21:39");
    expect(formatNear(at - 12 * 86_400_000, at, zone)).toBe("12 Oct");
  });
  it("come as text or milliseconds", () => {
    expect(toMillis("2026-10-24T01:12:40.123Z")).toBe(at);
    expect(toMillis(at)).toBe(at);
    expect(formatClockMillis(at, zone)).toBe("03:12:40.123");
  });
});

describe("ids and lines", () => {
  it("keep the tail, or the tick", () => {
    expect(shortId("01a16b72-110a-7c4e-9b1d-9f3a61c2e81d")).toBe("…61c2e81d");
    expect(shortId("sweep_carts@03:10:00")).toBe("@03:10:00");
    expect(priorityName(10)).toBe("high");
    expect(priorityName(1)).toBe("low");
    expect(tidyCron(" 0  2 * * * ")).toBe("0 2 * * *");
  });
});
