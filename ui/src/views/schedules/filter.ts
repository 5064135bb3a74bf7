import type { Schedule } from "../../api/types/schedules";
import type { Qualifier } from "../../filter/qualifiers";
import { type Token, tokenise } from "../../filter/tokens";
import { isLate, stateOf } from "./state";

export const SCHEDULE_QUALIFIERS: readonly Qualifier[] = [
  { name: "type", comparisons: [":"], hint: "task type" },
  { name: "zone", comparisons: [":"], hint: "for example Europe/Paris" },
  { name: "queue", comparisons: [":"], hint: "queue of its runs" },
  { name: "is", comparisons: [":"], hint: "on, paused, stopped, off, late, running", values: ["on", "paused", "stopped", "off", "late", "running"] },
  { name: "source", comparisons: [":"], hint: "code or api", values: ["code", "api"] },
];

function fitsState(schedule: Schedule, value: string, now: number): boolean {
  const state = stateOf(schedule);
  if (value === "late") return isLate(schedule, now);
  if (value === "running") return state === "runs";
  return value === state || (value === "on" && state === "runs");
}

function fitsValue(schedule: Schedule, name: string, value: string, now: number): boolean {
  switch (name) {
    case "type":
      return schedule.type === value;
    case "zone":
      return schedule.timezone.toLowerCase().startsWith(value.toLowerCase());
    case "queue":
      return schedule.queue === value;
    case "source":
      return value === (schedule.declared ? "code" : "api");
    case "is":
      return fitsState(schedule, value, now);
    default:
      return `${schedule.id} ${schedule.name} ${schedule.type}`.toLowerCase().includes(value.toLowerCase());
  }
}

function fits(schedule: Schedule, token: Token, now: number): boolean {
  return token.values.some((value) => fitsValue(schedule, token.name, value, now)) !== token.negated;
}

/** Schedules are few, and the page has them: they are narrowed down where they are. */
export function narrow(schedules: readonly Schedule[], filter: string, now: number): Schedule[] {
  const tokens = tokenise(filter);
  return schedules.filter((schedule) => tokens.every((token) => fits(schedule, token, now)));
}

/** What the schedules themselves have under a name, with how many. */
export function valuesOf(schedules: readonly Schedule[], name: string, start: string): { text: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const schedule of schedules) {
    const value = name === "type" ? schedule.type : name === "zone" ? schedule.timezone : name === "queue" ? schedule.queue : "";
    if (value && value.toLowerCase().startsWith(start.toLowerCase())) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => ({ text, count })).slice(0, 8);
}
