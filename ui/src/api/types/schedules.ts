/** Schedules, as the API sends and takes them. */

import type { Json } from "../../components/JsonViewer";

export type Overlap = "skip" | "queue" | "allow";
export type Misfire = "latest" | "skip" | "all";
export type OnExhausted = "stop" | "continue";
export type Dst = "once" | "instant";

/** A run that has ended, or ticks that were left out. */
export interface ScheduleRun {
  /** Its tick; when ticks were left out, the time of that. */
  at: string;
  outcome: "success" | "failed" | "dead" | "cancelled" | "skipped" | "missed";
  task_id: string | null;
  /** Seconds from the tick to its task. */
  late: number | null;
  /** Seconds, of the last attempt. */
  duration: number | null;
  /** Ticks that were missed. */
  count: number;
}

export interface Schedule {
  id: string;
  name: string;
  type: string;
  cron: string | null;
  timezone: string;
  /** The line in words. */
  description: string;
  /** It fires: neither off, nor paused, nor stopped. */
  enabled: boolean;
  paused: boolean;
  /** Why it stopped itself; empty if it did not. */
  stopped: string;
  /** A program has it in its code and writes it again at its start. */
  declared: boolean;
  overlap: Overlap;
  misfire: Misfire;
  misfire_grace: number;
  misfire_cap: number;
  on_exhausted: OnExhausted;
  dst: Dst;
  next_at: string | null;
  last_fire_at: string | null;
  last_task_id: string | null;
  last_status: string;
  created_at: string;
  updated_at: string;
  executor: string;
  target: string | null;
  payload: Json;
  queue: string;
  priority: number;
  max_retry: number | null;
  timeout: number | null;
  key: string | null;
  tags: Record<string, string>;
  /** The last runs, the latest first, 30 at most. */
  runs: ScheduleRun[];
  /** Seconds that 95 % of these runs were late at most. */
  late: number | null;
  /** What clocks do at `next_at`; mostly empty. */
  next_mark: string;
}

export interface SchedulePage {
  items: Schedule[];
  cursor: string | null;
}

export interface NextRun {
  at: string;
  /** As the clocks of its zone show it. */
  local: string;
  /** What clocks do at that time; mostly empty. */
  mark: string;
}

export interface LinePreview {
  description: string;
  timezone: string;
  runs: NextRun[];
  /** What is wrong with the line or the zone. */
  problem: string | null;
}

export interface CalendarSlot {
  /** The beginning of a half hour. */
  at: string;
  count: number;
  /** Some of the schedules. */
  schedules: string[];
}

export interface Calendar {
  slots: CalendarSlot[];
  total: number;
  at_least: boolean;
}
