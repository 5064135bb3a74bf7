import { describe, expect, it } from "vitest";
import { asCommand, asPython, pythonValue, shellWord } from "./copying";

describe("shellWord", () => {
  it.each([
    ["send_email", "send_email"],
    ["", "''"],
    ["it's", `'it'\\''s'`],
    ["$(rm -rf /)", "'$(rm -rf /)'"],
  ])("%s", (text, word) => expect(shellWord(text)).toBe(word));
});

describe("a task to copy", () => {
  const task = { type: "mail", payload: { to: "a@b.c", now: true, cc: null }, queue: "email", delay: 60, tags: { env: "prod" } };
  it("is a command", () => {
    expect(asCommand(task)).toBe(`tickwork submit mail '{"to":"a@b.c","now":true,"cc":null}' --queue email --delay 60 --tag env=prod`);
  });
  it("is Python", () => {
    expect(pythonValue(task.payload)).toBe('{"to": "a@b.c", "now": True, "cc": None}');
    expect(asPython({ type: "sweep" })).toBe('await app.submit("sweep")');
    expect(asPython(task)).toContain('tags={"env": "prod"}');
  });
});
