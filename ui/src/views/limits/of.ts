import { tokenText } from "../../filter/tokens";

/** What a rule is of: `type:mail`, `queue:orders`, `key:acme`, `tag:customer=acme`, `target:http/billing`. */
export interface Of {
  kind: string;
  name: string;
}

export function splitOf(of: string): Of {
  const at = of.indexOf(":");
  return at < 0 ? { kind: "", name: of } : { kind: of.slice(0, at), name: of.slice(at + 1) };
}

/** The filter that finds the tasks which a rule holds. */
export function heldBy(of: string, waits: "limit" | "breaker" | "switch"): string {
  const { kind, name } = splitOf(of);
  const held = `waits:${waits}`;
  if (kind === "tag") {
    const at = name.indexOf("=");
    return `${tokenText(`tag.${name.slice(0, at)}`, [name.slice(at + 1)])} ${held}`;
  }
  return kind === "type" || kind === "queue" || kind === "key" ? `${tokenText(kind, [name])} ${held}` : held;
}

const UNITS: readonly (readonly [string, number])[] = [
  ["s", 1],
  ["m", 60],
  ["h", 3600],
  ["d", 86_400],
];

/** A rate in the shortest unit in which it is a whole number, as it is typed too: 1.6667 -> "100/m". */
export function rateText(perSecond: number): string {
  for (const [unit, seconds] of UNITS) {
    const count = perSecond * seconds;
    if (Math.round(count) >= 1 && Math.abs(count - Math.round(count)) <= 1e-9 * count) return `${Math.round(count)}/${unit}`;
  }
  const [unit, seconds] = UNITS.find(([, size]) => perSecond * size >= 1) ?? ["d", 86_400];
  return `${Number((perSecond * seconds).toPrecision(6))}/${unit}`;
}
