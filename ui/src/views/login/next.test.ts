import { describe, expect, it } from "vitest";
import { nextPlace } from "./next";

const BASE = "https://ops.example/ops/tickwork/";

describe("nextPlace", () => {
  it.each([
    [null, ""],
    ["", ""],
    ["tasks?q=type%3Aa&ns=b", "tasks?q=type%3Aa&ns=b"],
    ["queues/a%2Fb", "queues/a%2Fb"],
    ["/ops/tickwork/tasks", "tasks"],
    ["https://evil.example/", ""],
    ["//evil.example/x", ""],
    ["/\\evil.example", ""],
    ["/elsewhere", ""],
    ["../../x", ""],
    ["javascript:alert(1)", ""],
    ["/ops/tickwork//evil.example", ""],
    ["login?next=login", ""],
  ])("%s leads to '%s'", (next, place) => {
    expect(nextPlace(next, BASE)).toBe(place);
  });
});
