import { describe, expect, it } from "vitest";
import { plainText, splitHidden } from "./split";

describe("splitHidden", () => {
  it("leaves ordinary text alone, of any script", () => {
    for (const text of ["charge_payment", "größe", "注文", "שלום", "a\tb\nc", "👩‍🚀".replace("\u200d", "")]) {
      expect(splitHidden(text)).toEqual([{ text }]);
    }
  });
  it("names what would not be seen", () => {
    expect(plainText("abc\u202Etxt.exe")).toBe("abc[U+202E]txt.exe");
    expect(plainText("a\u200bb\u0000c\u001b[31m")).toBe("a[U+200B]b[U+0000]c[U+001B][31m");
    expect(plainText("\ud800")).toBe("[U+D800]");
    expect(plainText("\u{e0041}")).toBe("[U+E0041]");
  });
});
