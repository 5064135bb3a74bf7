import { computed } from "@preact/signals";
import { query, setQuery } from "../router/location";
import { prefs, type Range, setPref } from "./prefs";

const SECONDS: Readonly<Record<Range, number>> = { "1h": 3600, "24h": 86_400, "7d": 604_800 };

function isRange(text: string | null): text is Range {
  return text !== null && text in SECONDS;
}

/** The range of the address, else the one this browser used last. */
export const range = computed<Range>(() => {
  const asked = query.value.get("range");
  return isRange(asked) ? asked : prefs.value.range;
});

export const rangeSeconds = computed(() => SECONDS[range.value]);

export function setRange(next: Range): void {
  setPref("range", next);
  setQuery({ range: next });
}
