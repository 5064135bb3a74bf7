import { describe, expect, it } from "vitest";
import { readValue } from "./values";

describe("readValue", () => {
  it.each([
    ["None", "none", true],
    ["()", "none", true],
    ["''", "empty", true],
    ["True", "true", false],
    ["'shop'", "shop", false],
    ['"it\'s"', "it's", false],
    ["('default', 'email')", "default, email", false],
    ["('default',)", "default", false],
    ["300.0", "300.0", false],
    ["ExponentialBackoff(base=1.0)", "ExponentialBackoff(base=1.0)", false],
    ["{'a': 1}", "{'a': 1}", false],
  ])("%s is shown as %s", (text, shown, isNothing) => {
    expect(readValue(text)).toEqual({ shown, isNothing });
  });
});
