import { computed, signal } from "@preact/signals";
import { storeNow } from "../state/clock";

export interface Outage {
  /** The store is behind the server: either may be gone. */
  what: "server" | "store";
  since: number;
  detail: string;
}

export const outage = signal<Outage | null>(null);

/** Grows each time the server is back: what is shown must be read again. */
export const reconnects = signal(0);

/** Why nothing can be changed now; null if it can. */
export const reasonOffline = computed(() => {
  if (!outage.value) return null;
  return outage.value.what === "store" ? "The store cannot be reached." : "The server cannot be reached.";
});

export function markUnreachable(what: Outage["what"], detail = "", extra: Readonly<Record<string, unknown>> = {}): void {
  const since = typeof extra.since === "string" ? Date.parse(extra.since) : Number.NaN;
  const known = outage.peek();
  outage.value = { what, detail, since: Number.isFinite(since) ? since : (known?.since ?? storeNow()) };
}

/** Something was answered. What needs no store says nothing about the store. */
export function markReachable(what: Outage["what"]): void {
  const known = outage.peek();
  if (known === null || (known.what === "store" && what === "server")) return;
  outage.value = null;
  reconnects.value += 1;
}
