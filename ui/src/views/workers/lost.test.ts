import { expect, it } from "vitest";
import { howLost } from "./lost";

it.each([
  ["2026-11-18T03:00:15Z", "not heard of for a whole lease (15 s)"],
  ["2026-11-18T03:00:00Z", "not heard of for a whole lease"],
  ["2026-11-18T03:00:00.2Z", "not heard of for a whole lease"],
  ["2026-11-18T02:59:00Z", "not heard of for a whole lease"],
  ["", "not heard of for a whole lease"],
])("a lease until %s: %s", (expires_at, words) => {
  expect(howLost({ beat_at: "2026-11-18T03:00:00Z", expires_at })).toBe(words);
});
