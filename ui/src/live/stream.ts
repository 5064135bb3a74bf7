import { batch, computed, effect, signal } from "@preact/signals";
import { markReachable, outage, reconnects } from "../api/reach";
import { apiUrl } from "../api/client";
import type { Event, StatusCounts, Tick } from "../api/types";
import { namespace } from "../router/location";
import { setStoreTime, storeNow } from "../state/clock";
import { readSession, session } from "../state/session";

export type LiveState = "connecting" | "live" | "paused" | "reconnecting" | "offline";

/** How the stream itself is; `liveState` is what the reader is told. */
const link = signal<"closed" | "opening" | "open" | "lost">("closed");
const lostFor3Seconds = signal(false);

/** The reader stopped the updates (`p`). */
export const isPaused = signal(false);
/** The store's time of the last frame; 0 before the first. */
export const lastFrameAt = signal(0);
/** Counts by status, as of the last frame. */
export const liveCounts = signal<StatusCounts | null>(null);
/** The last tick, for numbers of queues. */
export const lastTick = signal<Tick | null>(null);
/** Events that left the log while the page was not listening. */
export const missedEvents = signal(0);

export const liveState = computed<LiveState>(() => {
  if (outage.value) return "offline";
  if (isPaused.value) return "paused";
  if (link.value === "open") return "live";
  if (lostFor3Seconds.value) return "reconnecting";
  return lastFrameAt.value > 0 ? "live" : "connecting";
});

type Listener = (events: readonly Event[]) => void;
const listeners = new Set<Listener>();
const topics = signal<ReadonlyMap<symbol, readonly string[]>>(new Map());

/** Calls back with new events, at most once a frame. Returns what ends it. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Asks for topics while something is on the screen. Returns what ends it. */
export function subscribe(names: readonly string[]): () => void {
  const key = Symbol("topics");
  topics.value = new Map(topics.peek()).set(key, names);
  return () => {
    const rest = new Map(topics.peek());
    rest.delete(key);
    topics.value = rest;
  };
}

const wantedTopics = computed(() => [...new Set([...topics.value.values()].flat())].sort().join(","));

let source: EventSource | null = null;
let lastSeq = 0;
/** A stream of other topics, or of another namespace, is about to open: what the old one still brings is no position of it. */
let isTurning = false;
let retryTimer = 0;
let retries = 0;
let lostTimer = 0;
let hideTimer = 0;
let topicTimer = 0;

let waitingEvents: Event[] = [];
let waitingTick: Tick | null = null;
let isScheduled = false;
const MOST_WAITING = 5000;

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(apply);
}

/** All that came since the last frame, in one go: one layout, one paint. */
function apply(): void {
  isScheduled = false;
  const events = waitingEvents;
  const tick = waitingTick;
  waitingEvents = [];
  waitingTick = null;
  batch(() => {
    if (tick) {
      setStoreTime(Date.parse(tick.time));
      liveCounts.value = tick.counts;
      lastTick.value = tick;
    }
    lastFrameAt.value = storeNow();
    if (events.length > 0) for (const listener of listeners) listener(events);
  });
}

function parse<Data>(message: MessageEvent): Data | null {
  try {
    return JSON.parse(String(message.data)) as Data;
  } catch {
    return null;
  }
}

/** The first frame. What the views read before it may be older than the position at which the stream begins. */
function onOpenFrame(message: MessageEvent): void {
  if (typeof message.data !== "string") return; // the browser's own event of that name
  const beganAnywhere = lastSeq === 0;
  takePosition(message);
  if (beganAnywhere) reconnects.value += 1;
}

/** Where the next stream goes on, so that it has all that happens while a view reads its rows and asks for its topics. */
function takePosition(message: MessageEvent): void {
  if (!isTurning) lastSeq = Number(message.lastEventId) || lastSeq;
}

function onEventsFrame(message: MessageEvent): void {
  const events = parse<Event[]>(message);
  if (!Array.isArray(events)) return;
  takePosition(message);
  waitingEvents.push(...events);
  if (waitingEvents.length > MOST_WAITING) waitingEvents = waitingEvents.slice(-MOST_WAITING);
  schedule();
}

function onTickFrame(message: MessageEvent): void {
  takePosition(message);
  waitingTick = parse<Tick>(message) ?? waitingTick;
  schedule();
}

function onMissedFrame(message: MessageEvent): void {
  const missed = parse<{ count: number }>(message);
  missedEvents.value += missed?.count ?? 0;
  reconnects.value += 1;
}

function markOpen(): void {
  retries = 0;
  clearTimeout(lostTimer);
  lostFor3Seconds.value = false;
  const wasLost = link.peek() === "lost";
  link.value = "open";
  markReachable("server");
  if (wasLost) reconnects.value += 1;
}

function markLost(): void {
  if (link.peek() !== "lost") {
    link.value = "lost";
    clearTimeout(lostTimer);
    lostTimer = setTimeout(() => (lostFor3Seconds.value = true), 3000);
  }
}

/** The browser reconnects by itself unless the server refused; then the reason is asked for, and it is tried again. */
function onStreamError(): void {
  markLost();
  if (source?.readyState !== EventSource.CLOSED) return;
  close();
  link.value = "lost";
  retries += 1;
  clearTimeout(retryTimer);
  retryTimer = setTimeout(() => {
    // A stream cannot say why it was refused; this answer can (signed out, store gone).
    void readSession().then(open);
  }, Math.min(2000, 250 * 2 ** retries));
}

function close(): void {
  source?.close();
  source = null;
}

function open(): void {
  clearTimeout(retryTimer);
  close();
  isTurning = false;
  if (isPaused.peek() || document.hidden || session.peek() === null) return;
  if (link.peek() === "closed") link.value = "opening";
  const query = { topics: wantedTopics.peek() || null, after: lastSeq || null };
  source = new EventSource(apiUrl("events/stream", query), { withCredentials: false });
  source.addEventListener("open", markOpen);
  source.addEventListener("open", onOpenFrame as EventListener);
  source.addEventListener("error", onStreamError);
  source.addEventListener("events", onEventsFrame as EventListener);
  source.addEventListener("tick", onTickFrame as EventListener);
  source.addEventListener("missed", onMissedFrame as EventListener);
}

export function setPaused(paused: boolean): void {
  if (paused === isPaused.peek()) return;
  isPaused.value = paused;
  if (paused) {
    close();
    link.value = "closed";
  } else {
    reconnects.value += 1;
    open();
  }
}

function onVisibility(): void {
  clearTimeout(hideTimer);
  if (document.hidden) {
    hideTimer = setTimeout(() => {
      close();
      link.value = "closed";
    }, 10_000);
  } else if (source === null && !isPaused.peek()) {
    // One read of everything, then the stream.
    reconnects.value += 1;
    open();
  }
}

/** Starts the one stream of this tab. It opens anew when the view wants other topics or the namespace changes. */
export function startLive(): void {
  document.addEventListener("visibilitychange", onVisibility);
  let known = "";
  effect(() => {
    const wanted = `${namespace.value} ${wantedTopics.value} ${session.value !== null}`;
    if (wanted === known) return;
    if (namespace.value !== known.split(" ")[0]) lastSeq = 0;
    known = wanted;
    isTurning = true;
    // Views change their topics in pairs (one leaves, one comes): wait for both.
    clearTimeout(topicTimer);
    topicTimer = setTimeout(open, source ? 80 : 0);
  });
}
