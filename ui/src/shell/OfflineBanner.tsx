import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/client";
import { type Outage, outage } from "../api/reach";
import { Button } from "../components/Button";
import { plural } from "../format/numbers";
import { formatClock } from "../format/times";
import { missedEvents } from "../live/stream";
import { zone } from "../state/prefs";
import { readSession } from "../state/session";

const RETRY_EVERY = 2000;
const back = signal<{ what: "store" | "server"; missed: number } | null>(null);

/** Remembers an outage that ended, to tell what was missed. */
let before: "store" | "server" | null = null;
effect(() => {
  const now = outage.value?.what ?? null;
  if (now === null && before !== null) back.value = { what: before, missed: missedEvents.peek() };
  if (now !== null) back.value = null;
  if (now !== null && before === null) missedEvents.value = 0;
  before = now;
});
effect(() => {
  const missed = missedEvents.value;
  if (missed > 0) back.value = { what: back.peek()?.what ?? "server", missed };
});

function lostText(what: "store" | "server", since: string): string {
  if (what === "store") return `The store cannot be reached since ${since}. Workers go on with what they run; submits are refused. Trying again every 2 s.`;
  return `The server cannot be reached since ${since}. What you see is of that time. Trying again every 2 s.`;
}

function backText(what: "store" | "server", missed: number): string {
  const told = missed > 0 ? `You missed ${plural(missed, "event")}; everything shown is current.` : "Everything shown is current.";
  return `The ${what} is back. ${told}`;
}

/** Who calls is known without the store in some set-ups, so that would not tell whether it is back. */
function askAgain(what: Outage["what"]): Promise<unknown> {
  return what === "server" ? readSession() : get("counts").catch(() => undefined);
}

/** One line under the top bar; the data stays, and its age is told. */
export function OfflineBanner() {
  const lost = outage.value;
  useEffect(() => {
    if (!lost) return;
    const timer = setInterval(() => void askAgain(lost.what), RETRY_EVERY);
    return () => clearInterval(timer);
  }, [lost?.what]);
  useEffect(() => {
    if (!back.value) return;
    const timer = setTimeout(() => (back.value = null), 15_000);
    return () => clearTimeout(timer);
  }, [back.value]);
  if (lost) {
    return (
      <div class="offline-line" role="alert">
        {lostText(lost.what, formatClock(lost.since, zone.value))}
      </div>
    );
  }
  if (!back.value) return null;
  return (
    <div class="offline-line back" role="status">
      <span>{backText(back.value.what, back.value.missed)}</span>
      <Button kind="quiet" small icon="close" label="Close" onClick={() => (back.value = null)} />
    </div>
  );
}
