import type { ComponentChildren } from "preact";
import type { Schedule, ScheduleRun } from "../../api/types/schedules";
import { Held, Pill } from "../../components/marks";
import type { Run, RunOutcome } from "../../components/Strip";
import { Elapsed } from "../../components/TimeAgo";
import { plural } from "../../format/numbers";
import { StatusShape, type Tone } from "../../icons/StatusShape";
import { pathOf } from "../../router/location";

export type ScheduleState = "stopped" | "paused" | "off" | "runs" | "on";

/** It was fired, and the run has not told of its end. */
export function isRunning(schedule: Schedule): boolean {
  return schedule.last_task_id !== null && schedule.last_status === "";
}

export function stateOf(schedule: Schedule): ScheduleState {
  if (schedule.stopped) return "stopped";
  if (schedule.paused) return "paused";
  if (!schedule.enabled) return "off";
  return isRunning(schedule) ? "runs" : "on";
}

const LATE_AFTER = 10_000;

/** Its tick is over and it has not been fired. */
export function isLate(schedule: Schedule, now: number): boolean {
  return schedule.enabled && schedule.next_at !== null && now - Date.parse(schedule.next_at) > LATE_AFTER;
}

/** In a table, calm: nothing but a word while all is well. */
export function StateMark({ schedule }: { schedule: Schedule }) {
  switch (stateOf(schedule)) {
    case "stopped":
      return (
        <span class="st c-bad">
          <StatusShape status="dead" />
          stopped itself
        </span>
      );
    case "paused":
      return <Held icon="pause">paused</Held>;
    case "off":
      return <Held icon="switch">off</Held>;
    case "runs":
      return (
        <span class="st">
          <StatusShape status="running" />
          <span>
            runs{schedule.last_fire_at && <>, <Elapsed since={schedule.last_fire_at} /></>}
          </span>
        </span>
      );
    default:
      return <span class="dim">on</span>;
  }
}

const PILLS: Readonly<Record<ScheduleState, readonly [Tone, ComponentChildren]>> = {
  stopped: ["bad", "stopped itself"],
  paused: ["heal", "paused"],
  off: ["heal", "off"],
  runs: ["play", "runs"],
  on: ["good", "on"],
};

export function StatePill({ schedule }: { schedule: Schedule }) {
  const [tone, words] = PILLS[stateOf(schedule)];
  return <Pill tone={tone}>{words}</Pill>;
}

const OUTCOMES: Readonly<Record<ScheduleRun["outcome"], RunOutcome>> = { success: "success", failed: "dead", dead: "dead", cancelled: "skipped", skipped: "skipped", missed: "skipped" };

const WORDS: Readonly<Record<ScheduleRun["outcome"], string>> = {
  success: "success",
  failed: "failed",
  dead: "dead",
  cancelled: "cancelled",
  skipped: "skipped, the run before went on",
  missed: "missed",
};

export function outcomeText(run: ScheduleRun): string {
  return run.outcome === "missed" ? `${plural(run.count, "tick")} missed` : WORDS[run.outcome];
}

/** The runs of a schedule for a strip: oldest first, and the one that goes on at the end. */
export function stripOf(schedule: Schedule): Run[] {
  const runs: Run[] = schedule.runs.map((run) => ({
    outcome: OUTCOMES[run.outcome] ?? "skipped",
    at: run.at,
    text: outcomeText(run),
    ...(run.task_id ? { to: pathOf("tasks", run.task_id) } : {}),
  }));
  runs.reverse();
  const known = new Set(schedule.runs.map((run) => run.task_id));
  if (isRunning(schedule) && schedule.last_fire_at && schedule.last_task_id && !known.has(schedule.last_task_id)) {
    runs.push({ outcome: "running", at: schedule.last_fire_at, to: pathOf("tasks", schedule.last_task_id) });
  }
  return runs.slice(-30);
}
