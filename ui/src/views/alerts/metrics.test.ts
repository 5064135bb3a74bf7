import { describe, expect, it } from "vitest";
import { conditionOf, formatMetric, formatSpan } from "./metrics";

describe("metrics of alerts", () => {
  it.each([
    ["task_failure_rate", 0.0418, "4.2 %"],
    ["queue_age_seconds", 328, "5 min 28 s"],
    ["dead_letters_added", 1204, "1,204"],
    ["worker_memory_bytes", 1_258_291, "1.3 MB"],
    ["a_metric_of_later", 2.5, "2.5"],
  ])("%s of %d is %s", (name, value, text) => {
    expect(formatMetric(name, value)).toBe(text);
  });
  it("says a condition", () => {
    expect(conditionOf({ metric: "dead_letters_added", operator: ">", threshold: 10, duration: 60 })).toBe("dead_letters_added > 10 for 1 min");
    expect(conditionOf({ metric: "store_used", operator: ">=", threshold: 0.9, duration: 0 })).toBe("store_used ≥ 90 %");
  });
  it("writes a threshold as it was meant", () => {
    expect(conditionOf({ metric: "queue_age_seconds", operator: ">", threshold: 300, duration: 300 })).toBe("queue_age_seconds > 5 min for 5 min");
  });
  it.each([
    [60, "1 min"],
    [7200, "2 h"],
    [90, "1 min 30 s"],
    [5, "5.0 s"],
  ])("%d s is %s", (seconds, text) => {
    expect(formatSpan(seconds)).toBe(text);
  });
});
