import { signal } from "@preact/signals";

/** How far the store's clock is ahead of this browser's. Ages are told by the store's clock. */
let ahead = 0;

/** Changes once a second; the only timer that relative times hang on. */
export const secondTick = signal(Date.now());
/** Changes once a minute. */
export const minuteTick = signal(Date.now());

/** The time by the store's clock, in milliseconds, without subscribing to anything. */
export function storeNow(): number {
  return Date.now() + ahead;
}

export function setStoreTime(at: number): void {
  if (Number.isFinite(at)) ahead = at - Date.now();
}

function beat(): void {
  const now = storeNow();
  secondTick.value = now;
  if (Math.floor(now / 60_000) !== Math.floor(minuteTick.peek() / 60_000)) minuteTick.value = now;
}

setInterval(() => {
  if (!document.hidden) beat();
}, 1000);

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    minuteTick.value = storeNow();
    beat();
  }
});

/** Now, for telling how far a moment is: follows the second while it is within a minute, else the minute. */
export function nowFor(at: number): number {
  if (Math.abs(storeNow() - at) < 61_000) return secondTick.value;
  void minuteTick.value;
  return storeNow();
}
