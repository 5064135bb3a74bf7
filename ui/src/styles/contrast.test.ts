import { describe, expect, it } from "vitest";
import css from "./tokens.css?raw";

const GROUNDS = ["bg", "surface", "sunken", "hover", "sel"];
const TEXTS = ["ink", "ink2", "ink3", "rest", "play", "heal", "bad", "good"];
const FILLS = ["rest-f", "play-f", "heal-f", "bad-f", "good-f"];

function tokens(selector: string): Map<string, string> {
  const block = css.split(`${selector} {`)[1]?.split("}")[0] ?? "";
  return new Map([...block.matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6});/g)].map((found) => [found[1] ?? "", found[2] ?? ""]));
}

function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red = 0, green = 0, blue = 0] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function ratio(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

describe.each([["light", ":root"], ["dark", '[data-theme="dark"]']])("colours, %s", (_, selector) => {
  const named = tokens(selector);
  const colour = (name: string) => named.get(name) ?? "#000000";
  it.each(TEXTS)("%s can be read on every ground", (text) => {
    const grounds = named.has(`${text}-t`) ? [...GROUNDS, `${text}-t`] : GROUNDS;
    for (const ground of grounds) expect(ratio(colour(text), colour(ground)), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
  });
  it.each(FILLS)("%s can be seen on every ground but the chosen row", (fill) => {
    for (const ground of GROUNDS.slice(0, 4)) expect(ratio(colour(fill), colour(ground)), `${fill} on ${ground}`).toBeGreaterThanOrEqual(3);
  });
});
