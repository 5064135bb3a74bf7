import { describe, expect, it } from "vitest";
import { bodyOf, differences, emptyDraft, mistakesOf, newBody, secondsText } from "./form";

const draft = { ...emptyDraft("Europe/Paris"), id: "close_day", type: "close_day", cron: " 0  2 * * * " };

describe("the form of a schedule", () => {
  it("sends of a new one only what was filled in", () => {
    expect(newBody(draft)).toEqual({ id: "close_day", type: "close_day", timezone: "Europe/Paris", cron: "0 2 * * *" });
    expect(newBody({ ...draft, payload: '{"a":1}', tags: "env=prod", max_retry: "0" })).toMatchObject({ payload: { a: 1 }, tags: { env: "prod" }, max_retry: 0 });
  });
  it("sends of an edited one only what differs", () => {
    const after = { ...draft, overlap: "queue", timeout: "5m", cron: "" };
    const changed = differences(draft, after);
    expect(changed.map((one) => one.name)).toEqual(["cron", "overlap", "timeout"]);
    expect(bodyOf(after, changed.map((one) => one.name))).toEqual({ cron: null, overlap: "queue", timeout: 300 });
  });
  it("says what is wrong, field by field", () => {
    expect(mistakesOf(draft)).toEqual({});
    expect(Object.keys(mistakesOf({ ...draft, id: "a b", type: "", payload: "{", timeout: "soon", priority: "11", tags: "x" })).sort()).toEqual(["id", "payload", "priority", "tags", "timeout", "type"]);
  });
  it("writes times so that they are read back", () => {
    expect([3600, 90, 300, 86_400, 0.5].map(secondsText)).toEqual(["1h", "90s", "5m", "1d", "0.5s"]);
  });
});
