import { computed, effect, signal, untracked } from "@preact/signals";
import { get } from "../api/client";
import { reconnects } from "../api/reach";
import type { Counts, Status, StatusCounts } from "../api/types";
import { liveCounts } from "../live/stream";
import { namespace } from "../router/location";
import { session } from "./session";

const readCounts = signal<Counts | null>(null);

/** The numbers beside the sidebar's entries; those by status follow the stream. */
export const counts = computed<Counts | null>(() => {
  const read = readCounts.value;
  if (!read) return null;
  const live = liveCounts.value;
  if (!live) return read;
  // The stream leaves out what is zero.
  const tasks = Object.fromEntries(Object.keys({ ...read.tasks, ...live }).map((status) => [status, live[status as Status] ?? 0]));
  return { ...read, tasks };
});

export const statusCounts = computed<StatusCounts>(() => counts.value?.tasks ?? liveCounts.value ?? {});

/** How many tasks there are, in every status or in some. */
export function countOf(...statuses: Status[]): number {
  const known = statusCounts.value;
  const wanted = statuses.length > 0 ? statuses : (Object.keys(known) as Status[]);
  return wanted.reduce((sum, status) => sum + (known[status] ?? 0), 0);
}

async function refreshCounts(): Promise<void> {
  try {
    readCounts.value = await get<Counts>("counts");
  } catch {
    // The banner tells of an outage; an old number is better than none.
  }
}

const REFRESH_EVERY = 15_000;

export function startCounts(): void {
  effect(() => {
    void reconnects.value;
    void namespace.value;
    if (session.value) untracked(() => void refreshCounts());
  });
  setInterval(() => !document.hidden && session.peek() && void refreshCounts(), REFRESH_EVERY);
}
