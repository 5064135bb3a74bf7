import { describe, expect, it } from "vitest";
import { highest, layers, roundUp } from "./chartOptions";
import { completionOf, suggestQualifiers, suggestValues } from "./filterSuggestions";
import { parseTraceback } from "./parseTraceback";
import { pathInWords, reached } from "./stateDiagramLayout";
import { partsOf } from "./tableWindow";
import { cutScale } from "./timelineScale";
import { TASK_QUALIFIERS } from "../filter/qualifiers";

describe("cutScale", () => {
  it("shares the line by time", () => {
    const scale = cutScale([{ from: 0, seconds: 2 }, { from: 2, seconds: 2 }]);
    expect(scale).toEqual({ places: [{ left: 0, width: 50 }, { left: 50, width: 50 }], end: 4, isCut: false });
  });
  it("cuts what takes nearly all", () => {
    const scale = cutScale([{ from: 0, seconds: 36 }, { from: 36, seconds: 323 }]);
    expect(scale.isCut).toBe(true);
    expect(scale.places[0]?.width).toBeCloseTo(88);
    expect(scale.places[1]?.left).toBeCloseTo(88);
    expect(scale.places[1]?.width).toBeCloseTo(12);
  });
  it("does not cut the only phase, and bears none", () => {
    expect(cutScale([{ from: 0, seconds: 5 }]).isCut).toBe(false);
    expect(cutScale([]).places).toEqual([]);
  });
});

describe("charts", () => {
  it("end at a round number", () => {
    expect([0, 0.3, 1, 1790, 2000, 76, 12].map(roundUp)).toEqual([1, 0.5, 1, 2000, 2000, 100, 20]);
  });
  it("pile bars on each other", () => {
    const died = { label: "died", bars: "bad" as const, values: [1, 0] };
    const retried = { label: "retried", bars: "heal" as const, values: [2, 3] };
    expect(highest([died, retried])).toBe(3);
    expect(layers([died, retried]).map((layer) => [layer.series.label, layer.values])).toEqual([["retried", [3, 3]], ["died", [1, 0]]]);
  });
});

describe("parseTraceback", () => {
  it("tells own code from libraries", () => {
    const text = [
      "Traceback (most recent call last):",
      '  File "/srv/venv/lib/python3.12/site-packages/httpx/_client.py", line 10, in send',
      "    return await call()",
      '  File "/srv/shop/payments.py", line 88, in charge_payment',
      "    receipt = await gateway.charge(order)",
      "    ^^^^^^^",
      "shop.GatewayTimeout: no answer",
    ].join("\n");
    expect(parseTraceback(text)).toEqual([
      { file: "/srv/venv/lib/python3.12/site-packages/httpx/_client.py", line: 10, function: "send", code: "return await call()", library: "httpx" },
      { file: "/srv/shop/payments.py", line: 88, function: "charge_payment", code: "receipt = await gateway.charge(order)", library: null },
    ]);
    expect(parseTraceback("no frames here")).toEqual([]);
  });
});

describe("the window of a table", () => {
  it("draws what is near, and the row with the focus", () => {
    expect(partsOf(500, 100, 150, -1)).toEqual([{ gap: 100, key: "gap first" }, { from: 100, to: 150 }, { gap: 350, key: "gap last" }]);
    expect(partsOf(500, 100, 150, 3)).toEqual([
      { gap: 3, key: "gap first" },
      { from: 3, to: 4 },
      { gap: 96, key: "gap middle" },
      { from: 100, to: 150 },
      { gap: 350, key: "gap last" },
    ]);
    expect(partsOf(500, 0, 50, 20)).toEqual([{ from: 0, to: 50 }, { gap: 450, key: "gap last" }]);
  });
});

describe("completion", () => {
  const signal = new AbortController().signal;
  it("offers qualifiers, then values", async () => {
    expect(suggestQualifiers("-ty", TASK_QUALIFIERS)?.map((one) => one.text)).toEqual(["type:"]);
    expect(suggestQualifiers("type:", TASK_QUALIFIERS)).toBeNull();
    expect((await suggestValues("status:ready,d", TASK_QUALIFIERS, undefined, signal)).map((one) => one.text)).toEqual(["dead"]);
    const source = async (name: string, typed: string) => [{ text: `${name} ${typed}` }];
    expect(await suggestValues('queue:"sl', TASK_QUALIFIERS, source, signal)).toEqual([{ text: "queue sl" }]);
  });
  it("completes in place", () => {
    expect(completionOf("-ty", { text: "type:", isPartial: true })).toBe("-type:");
    expect(completionOf("status:ready,d", { text: "dead" })).toBe("status:ready,dead");
    expect(completionOf('queue:"sl', { text: "slow lane" })).toBe('queue:"slow lane"');
  });
});

describe("the state diagram", () => {
  it("counts the ways taken", () => {
    const steps = reached(["ready", "running", "retrying", "ready", "running"]);
    expect(steps.get("ready running")).toEqual({ times: 2 });
    expect(steps.get("submitted ready")).toEqual({ times: 1 });
    expect(pathInWords(["ready", "running"])).toBe("States reached: submitted, ready, running now.");
  });
});
