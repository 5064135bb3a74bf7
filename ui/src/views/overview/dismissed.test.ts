import { describe, expect, it } from "vitest";
import type { Attention, Overview } from "../../api/types/overview";
import { markOf, marksLeft, readMarks, splitRows } from "./dismissed";
import { verdictOf } from "./words";

const row = (change: Partial<Attention> = {}): Attention => ({ level: "bad", kind: "alert", title: "Alert slow fires", text: "p95 is 9", at: "2026-11-18T03:07:02Z", link: "alerts", ...change });
const breaker = row({ kind: "breaker", level: "heal", title: "Breaker type:charge is open", at: "2026-11-18T03:13:12Z" });

describe("a dismissed row", () => {
  it("stays away while only its text changes", () => {
    const marks = [markOf(row())];
    expect(splitRows([row({ text: "p95 is 12" }), breaker], marks)).toEqual({ shown: [breaker], dismissed: [row({ text: "p95 is 12" })] });
  });
  it.each([
    ["title", { title: "Alert slower fires" }],
    ["level", { level: "rest" as const }],
    ["kind", { kind: "schedule" as const }],
    ["begin", { at: "2026-11-19T03:07:02Z" }],
  ])("comes back with another %s", (_, change) => {
    expect(splitRows([row(change)], [markOf(row())]).dismissed).toEqual([]);
  });
  it("stays away when a moment passes that is not its begin", () => {
    expect(splitRows([{ ...breaker, at: "2026-11-18T03:14:12Z" }], [markOf(breaker)]).shown).toEqual([]);
  });
  it("is forgotten once it is over", () => {
    const marks = [markOf(row()), markOf(breaker)];
    expect(marksLeft([breaker], marks)).toEqual([markOf(breaker)]);
    expect(marksLeft([breaker, row()], marks)).toBe(marks);
  });
  it("is not counted in the verdict", () => {
    const health = { status: "healthy" as const, timestamp: "", checks: {} };
    const overview = { attention: [row(), breaker], status: { health }, queues: [] } as unknown as Overview;
    const verdict = (marks: string[]) => verdictOf({ ...overview, attention: splitRows(overview.attention, marks).shown });
    expect(verdict([]).rest).toBe("1 thing needs you, 1 is held or heals itself.");
    expect(verdict([markOf(row())]).rest).toBe("1 is held or heals itself.");
    expect(verdict([markOf(row()), markOf(breaker)]).say).toBe("Healthy. Nothing needs you.");
  });
  it("is read back from what was stored, whatever that is", () => {
    expect(readMarks(JSON.stringify([markOf(row())]))).toEqual([markOf(row())]);
    for (const wrong of [null, "", "{", "null", "7", "{}"]) expect(readMarks(wrong)).toEqual([]);
    expect(readMarks('["a", 7, null]')).toEqual(["a"]);
  });
});
