import { useEffect, useRef } from "preact/hooks";
import type { Event } from "../api/types";
import { onEvents, subscribe } from "./stream";

/** Asks for topics while the component is there. A topic is the part of an event's kind before the dot: "task", "queue". */
export function useTopics(...names: string[]): void {
  const key = names.join(",");
  useEffect(() => subscribe(key ? key.split(",") : []), [key]);
}

/** Calls back with the events of each frame while the component is there. The last callback given is used. */
export function useEvents(callback: (events: readonly Event[]) => void): void {
  const last = useRef(callback);
  last.current = callback;
  useEffect(() => onEvents((events) => last.current(events)), []);
}

/** Of several events of one thing only the last: the last state wins. */
export function latestById(events: readonly Event[]): Map<string, Event> {
  const latest = new Map<string, Event>();
  for (const event of events) if (event.id !== null) latest.set(event.id, event);
  return latest;
}

/** Calls back at most once in `delay` ms after events that `isWanted` picks: for lists that are cheaper to read again. */
export function useRefreshOn(isWanted: (event: Event) => boolean, refresh: () => void, delay = 1000): void {
  const timer = useRef(0);
  useEvents((events) => {
    if (timer.current || !events.some(isWanted)) return;
    timer.current = setTimeout(() => {
      timer.current = 0;
      refresh();
    }, delay);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
}
