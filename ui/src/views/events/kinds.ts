import type { Status } from "../../api/types";
import type { IconName } from "../../icons/paths";
import type { Tone } from "../../icons/StatusShape";

/** What stands before the dot: what the fact is about. */
export function familyOf(kind: string): string {
  return kind.split(".")[0] ?? kind;
}

interface Look {
  tone: Tone;
  /** Facts of tasks have the shape of the status that they led to. */
  status?: Status;
  icon?: IconName;
}

const TASK: Readonly<Record<string, Status>> = {
  submitted: "pending",
  resolved: "blocked",
  due: "ready",
  hastened: "ready",
  rescheduled: "pending",
  parked: "ready",
  assigned: "assigned",
  unassigned: "ready",
  claimed: "running",
  succeeded: "success",
  retrying: "retrying",
  failed: "failed",
  died: "dead",
  snoozed: "pending",
  held: "retrying",
  released: "ready",
  lost: "retrying",
  cancel_asked: "cancelled",
  cancelled: "cancelled",
  expired: "cancelled",
  retried: "ready",
  deleted: "cancelled",
  dropped: "dead",
};

const TASK_TONE: Readonly<Record<string, Tone>> = {
  succeeded: "good",
  failed: "bad",
  died: "bad",
  dropped: "bad",
  retrying: "heal",
  held: "heal",
  lost: "heal",
  claimed: "play",
  assigned: "play",
};

const OTHERS: Readonly<Record<string, Look>> = {
  "worker.joined": { tone: "good", icon: "workers" },
  "worker.lost": { tone: "bad", icon: "lost" },
  "schedule.skipped": { tone: "heal", icon: "schedules" },
  "schedule.missed": { tone: "heal", icon: "schedules" },
  "schedule.stopped": { tone: "bad", icon: "schedules" },
  "queue.paused": { tone: "heal", icon: "pause" },
  "queue.resumed": { tone: "good", icon: "play" },
  "type.paused": { tone: "heal", icon: "pause" },
  "type.resumed": { tone: "good", icon: "play" },
  "switch.off": { tone: "heal", icon: "switch" },
  "switch.on": { tone: "good", icon: "switch" },
  "breaker.opened": { tone: "heal", icon: "breaker" },
  "breaker.probed": { tone: "play", icon: "breaker" },
  "breaker.closed": { tone: "good", icon: "breaker" },
  "alert.fired": { tone: "bad", icon: "alerts" },
  "alert.resolved": { tone: "good", icon: "alerts" },
  "leader.elected": { tone: "good", icon: "crown" },
  "leader.resigned": { tone: "rest", icon: "crown" },
  "log.missed": { tone: "heal", icon: "events" },
  "log.unreadable": { tone: "bad", icon: "events" },
};

const FAMILY_ICON: Readonly<Record<string, IconName>> = { worker: "workers", schedule: "schedules", queue: "queues", type: "tasks", limit: "limits", switch: "switch", breaker: "breaker", alert: "alerts", leader: "crown" };

/** The shape and colour of a fact. A kind that a newer server tells of is shown all the same. */
export function lookOf(kind: string): Look {
  const family = familyOf(kind);
  if (family === "task") {
    const verb = kind.slice(family.length + 1);
    return { tone: TASK_TONE[verb] ?? "rest", status: TASK[verb] ?? "pending" };
  }
  return OTHERS[kind] ?? { tone: "rest", icon: FAMILY_ICON[family] ?? "events" };
}

const FAMILIES = ["task", "worker", "leader", "schedule", "queue", "type", "limit", "switch", "breaker", "alert"] as const;
const WORKERS = ["worker.joined", "worker.left", "worker.lost", "worker.ordered"] as const;
const SCHEDULES = ["schedule.put", "schedule.fired", "schedule.skipped", "schedule.missed", "schedule.stopped", "schedule.dropped"] as const;
const STEERING = ["queue.paused", "queue.resumed", "type.paused", "type.resumed", "limit.set", "limit.removed", "switch.off", "switch.on", "breaker.opened", "breaker.probed", "breaker.closed"] as const;
const WHOLE = ["alert.fired", "alert.resolved", "alert.fired_silently", "alert.resolved_silently", "leader.elected", "leader.resigned"] as const;

/** What `kind:` offers: whole families first. */
export const KINDS: readonly string[] = [...FAMILIES, ...Object.keys(TASK).map((verb) => `task.${verb}`), ...WORKERS, ...SCHEDULES, ...STEERING, ...WHOLE];
