import type { NextRun, ScheduleRun } from "../../api/types/schedules";
import { offsetAt } from "./clocks";

const DAY = 86_400_000;

export type DayKind = "good" | "bad" | "skipped" | "planned" | "none" | "unknown";

export interface DayCell {
  /** The number of the day since 1970, on the schedule's clocks. */
  day: number;
  kind: DayKind;
  count: number;
  isToday: boolean;
}

export interface Weeks {
  /** One list a week, Monday first. */
  weeks: DayCell[][];
  /** More than one day is known: otherwise there is nothing to see. */
  isWorth: boolean;
}

export function dayOf(at: number, zone: string): number {
  return Math.floor((at + offsetAt(at, zone)) / DAY);
}

function kindOf(runs: readonly ScheduleRun[]): DayKind {
  if (runs.some((run) => run.outcome === "dead" || run.outcome === "failed")) return "bad";
  return runs.some((run) => run.outcome === "success") ? "good" : "skipped";
}

function byDay<Item extends { at: string }>(items: readonly Item[], zone: string): Map<number, Item[]> {
  const days = new Map<number, Item[]>();
  for (const item of items) {
    const day = dayOf(Date.parse(item.at), zone);
    days.set(day, [...(days.get(day) ?? []), item]);
  }
  return days;
}

const WEEKS = 8;
const AHEAD = 2;

interface WeeksInput {
  runs: readonly ScheduleRun[];
  next: readonly NextRun[];
  /** How many of each the server gives at most: beyond, nothing is known. */
  mostRuns: number;
  mostNext: number;
  now: number;
  zone: string;
}

/** Eight weeks of a schedule, two of them ahead: what came of each day, and when it runs next. */
export function weeksOf({ runs, next, mostRuns, mostNext, now, zone }: WeeksInput): Weeks {
  const past = byDay(runs, zone);
  const ahead = byDay(next, zone);
  const today = dayOf(now, zone);
  const weekday = (today + 3) % 7; // 1 January 1970 was a Thursday.
  const first = today - weekday - (WEEKS - 1 - AHEAD) * 7;
  const oldest = runs.length >= mostRuns ? Math.min(...past.keys()) : Math.min(today, ...past.keys());
  const latest = next.length >= mostNext ? Math.max(...ahead.keys()) : Number.POSITIVE_INFINITY;
  const cellOf = (day: number): DayCell => {
    const ran = past.get(day);
    const planned = ahead.get(day);
    const count = (ran?.reduce((sum, run) => sum + run.count, 0) ?? 0) || (planned?.length ?? 0);
    const isKnown = day >= oldest && day <= latest;
    const kind = ran ? kindOf(ran) : planned ? "planned" : isKnown ? "none" : "unknown";
    return { day, kind, count, isToday: day === today };
  };
  const weeks = Array.from({ length: WEEKS }, (_, week) => Array.from({ length: 7 }, (_, at) => cellOf(first + week * 7 + at)));
  return { weeks, isWorth: past.size + ahead.size > 2 };
}
