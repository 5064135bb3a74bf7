import { describe, expect, it } from "vitest";
import { heldBy, rateText, splitOf } from "./of";

describe("what a rule is of", () => {
  it("is split at the first colon", () => {
    expect(splitOf("key:order:1")).toEqual({ kind: "key", name: "order:1" });
  });
  it("finds the tasks that it holds", () => {
    expect(heldBy("type:mail", "limit")).toBe("type:mail waits:limit");
    expect(heldBy("tag:customer=a b", "switch")).toBe('tag.customer:"a b" waits:switch');
    expect(heldBy("target:http/billing", "breaker")).toBe("waits:breaker");
  });
});

describe("rateText", () => {
  it("writes a rate as one would type it", () => {
    expect([20, 100 / 60, 1000 / 3600, 10 / 86_400, 2.5].map(rateText)).toEqual(["20/s", "100/m", "1000/h", "10/d", "150/m"]);
  });
});
