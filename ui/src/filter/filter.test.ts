import { describe, expect, it } from "vitest";
import { editDistance, mistakeOf, TASK_QUALIFIERS } from "./qualifiers";
import { quote, tokenise, tokenText, valuesOf, withoutToken, withToken } from "./tokens";

function only(text: string) {
  const tokens = tokenise(text);
  expect(tokens).toHaveLength(1);
  return tokens[0]!;
}

describe("tokenise", () => {
  it("reads nothing from nothing", () => {
    expect(tokenise("")).toEqual([]);
    expect(tokenise("   ")).toEqual([]);
  });
  it("reads a qualifier and its alternatives", () => {
    expect(only("status:ready,running")).toMatchObject({ name: "status", comparison: ":", values: ["ready", "running"], negated: false });
  });
  it("keeps spaces and commas inside quotes", () => {
    expect(only('queue:"slow, very slow",fast').values).toEqual(["slow, very slow", "fast"]);
    expect(only('key:"say \\"hi\\""').values).toEqual(['say "hi"']);
  });
  it("reads not, comparisons and tags", () => {
    expect(only("-waits:time")).toMatchObject({ negated: true, name: "waits" });
    expect(only("run>10s")).toMatchObject({ name: "run", comparison: ">", values: ["10s"] });
    expect(only("attempt>=2")).toMatchObject({ comparison: ">=", values: ["2"] });
    expect(only("tag.env:prod")).toMatchObject({ name: "tag.env", values: ["prod"] });
  });
  it("keeps colons of the value", () => {
    expect(only("key:order:88397")).toMatchObject({ name: "key", values: ["order:88397"] });
  });
  it("takes a bare word for an id or a type", () => {
    expect(only("send_email")).toMatchObject({ name: "", values: ["send_email"] });
    expect(only("01a16b72-110a-7c4e-9b1d-9f3a61c2e81d")).toMatchObject({ name: "", negated: false });
    expect(only("-send_email")).toMatchObject({ name: "", negated: true, values: ["send_email"] });
  });
  it("knows where each stands, and whether a quote is open", () => {
    expect(tokenise("a  b").map((token) => [token.start, token.end])).toEqual([[0, 1], [3, 4]]);
    expect(only('queue:"slow la')).toMatchObject({ closed: false, values: ["slow la"] });
    expect(only('queue:"a\\').closed).toBe(false);
  });
});

describe("changing a filter", () => {
  it("quotes only what needs it, and reads it back", () => {
    for (const value of ["plain", "two words", "a,b", 'quo"te', "back\\slash", ""]) {
      expect(only(`key:${quote(value)}`).values).toEqual([value]);
    }
    expect(tokenText("status", ["ready", "dead"], ":", true)).toBe("-status:ready,dead");
  });
  it("replaces, removes and finds", () => {
    expect(withToken("status:ready type:a", "status", ["dead"])).toBe("type:a status:dead");
    expect(withToken("status:ready type:a", "status", [])).toBe("type:a");
    expect(withToken("-status:ready", "status", ["dead"])).toBe("-status:ready status:dead");
    expect(withoutToken("a b c", 1)).toBe("a c");
    expect(valuesOf("status:ready,dead -status:running", "status")).toEqual(["ready", "dead"]);
  });
});

describe("mistakes", () => {
  it("are named, with a guess where one is near", () => {
    expect(mistakeOf(only("statsu:ready"), TASK_QUALIFIERS)).toBe("statsu is not a qualifier. Did you mean status?");
    expect(mistakeOf(only("colour:red"), TASK_QUALIFIERS)).toBe("colour is not a qualifier.");
    expect(mistakeOf(only("tag.env:prod"), TASK_QUALIFIERS)).toBeNull();
    expect(mistakeOf(only("word"), TASK_QUALIFIERS)).toBeNull();
    expect(editDistance("statsu", "status")).toBe(1);
  });
});
