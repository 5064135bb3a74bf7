import type { Json } from "../../components/JsonViewer";

/** How the API writes a value that this role may not see. */
export const MASKED = "masked for your role";

/** A payload without what is masked in it: that must be filled in anew, never be sent as it reads here. */
export function unmasked(value: Json): Json {
  if (Array.isArray(value)) return value.map(unmasked);
  if (value === null || typeof value !== "object") return value === MASKED ? null : value;
  return Object.fromEntries(Object.entries(value).flatMap(([name, item]) => (item === MASKED ? [] : [[name, unmasked(item)]])));
}
