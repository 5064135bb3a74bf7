import { describe, expect, it } from "vitest";
import type { AuditRow } from "../../api/types/events";
import { readFilter, valuesAmong, writeFilter } from "./filter";

describe("readFilter", () => {
  it("reads one part of each text", () => {
    expect(readFilter('who:ines what:"paused a queue" target:reports')).toEqual({ filter: { who: "ines", what: "paused a queue", target: "reports" }, mistake: null });
    expect(readFilter("")).toEqual({ filter: {}, mistake: null });
  });
  it("guesses what a bare word is", () => {
    expect(readFilter("paused").filter).toEqual({ what: "paused" });
    expect(readFilter("01a1ecfa-4a0f-7453-a3f2-36fb540db8c6").filter).toEqual({ target: "01a1ecfa-4a0f-7453-a3f2-36fb540db8c6" });
  });
  it("says what the log cannot be asked for", () => {
    expect(readFilter("-who:ines")).toEqual({ filter: {}, mistake: "The log can be asked for what something is, not for what it is not." });
    expect(readFilter("who:ines,sam").mistake).toBe("The log can be asked for one who at a time.");
    expect(readFilter("who>ines").mistake).toBe("After who stands a colon.");
    expect(readFilter("who:ines who:sam")).toEqual({ filter: { who: "ines" }, mistake: "There are two of who; the log can be asked for one at a time." });
    expect(readFilter(`who:ines target:${"x".repeat(201)}`)).toEqual({ filter: { who: "ines" }, mistake: "What stands after target has at most 200 letters." });
  });
  it("leaves names that it does not know to the bar", () => {
    expect(readFilter("kind:task what:token")).toEqual({ filter: { what: "token" }, mistake: null });
  });
  it("writes what it reads", () => {
    const filter = { who: 'ines "the boss"', what: "paused a queue", target: "a, b" };
    expect(readFilter(writeFilter(filter)).filter).toEqual(filter);
  });
});

describe("valuesAmong", () => {
  const row = (who: string, target = ""): AuditRow => ({ number: 1, at: "", id: "", who, role: "", via: "", address: "", what: "", target, detail: "", result: "done", count: 1 });
  it("names each once, the most frequent first", () => {
    expect(valuesAmong([row("sam"), row("ines"), row("ines")], "who")).toEqual(["ines", "sam"]);
    expect(valuesAmong([row("sam"), row("ines", "mail")], "target")).toEqual(["mail"]);
  });
});
