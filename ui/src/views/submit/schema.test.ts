import { describe, expect, it } from "vitest";
import { draftOf, fitsForm, formOf, placeOf, readDraft } from "./schema";
import { atInZone } from "./moments";

const SCHEMA = {
  $ref: "#/$defs/payload",
  $defs: {
    payload: {
      type: "object",
      properties: {
        order: { type: "string" },
        count: { type: "integer", minimum: 1 },
        price: { anyOf: [{ type: "number" }, { type: "null" }], default: null },
        express: { type: "boolean", default: false },
        size: { enum: ["s", "m"] },
        lines: { type: "array", items: { type: "string" } },
        to: { $ref: "#/$defs/address" },
      },
      required: ["order", "count", "to"],
    },
    address: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

describe("formOf", () => {
  const fields = formOf(SCHEMA) ?? [];
  it("knows the kinds", () => {
    expect(fields.map((field) => [field.name, field.kind, field.isRequired])).toEqual([
      ["order", "text", true], ["count", "integer", true], ["price", "number", false], ["express", "boolean", false],
      ["size", "choice", false], ["lines", "json", false], ["to", "group", true],
    ]);
    expect(formOf(null)).toBe(null);
    expect(formOf({ type: "string" })).toBe(null);
  });
  it("reads back what it shows", () => {
    const payload = { order: "a", count: 3, price: 1.5, express: true, size: "m", lines: ["x"], to: { city: "Paris" } };
    expect(fitsForm(fields, payload)).toBe(true);
    expect(fitsForm(fields, { ...payload, other: 1 })).toBe(false);
    expect(readDraft(fields, draftOf(fields, payload))).toEqual({ value: payload, mistakes: {} });
  });
  it("says what is wrong", () => {
    const draft = { ...draftOf(fields, {}), count: "x", lines: "[" };
    const city = placeOf("to", "city");
    expect(readDraft(fields, draft).mistakes).toEqual({ order: "order is needed.", count: "Write a whole number.", lines: "This is not JSON.", [city]: "city is needed." });
  });
});

describe("atInZone", () => {
  it("reads the clock of a zone, over a change of its clocks too", () => {
    expect(atInZone("2026-07-01T09:00", "Europe/Paris")).toBe("2026-07-01T07:00:00.000Z");
    expect(atInZone("2026-12-01T09:00", "Europe/Paris")).toBe("2026-12-01T08:00:00.000Z");
    expect(atInZone("2026-10-25T04:00", "Europe/Paris")).toBe("2026-10-25T03:00:00.000Z");
    expect(atInZone("", "UTC")).toBe(null);
  });
});
