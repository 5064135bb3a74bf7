import type { Alert } from "../../api/types/events";
import { formatDuration } from "../../format/durations";
import { formatBytes, formatFigure, formatPercent } from "../../format/numbers";
import type { QueryValues } from "../../router/location";

type Unit = "count" | "share" | "seconds" | "bytes" | "cores";

interface Metric {
  /** What it is, to follow "is": a whole sentence is made of it. */
  means: string;
  unit: Unit;
  /** Where one sees what is behind it. */
  to: string;
  query?: QueryValues;
  place: string;
}

const METRICS: Readonly<Record<string, Metric>> = {
  task_failure_rate: { means: "of the tasks that ended in the last 5 minutes, the share that failed for good", unit: "share", to: "failures", place: "Failures" },
  task_retry_rate: { means: "of the attempts that ended in the last 5 minutes, the share that is tried again", unit: "share", to: "tasks", query: { q: "status:retrying" }, place: "Retrying tasks" },
  dead_letters_added: { means: "tasks that became dead letters in the last 5 minutes", unit: "count", to: "failures", place: "Failures" },
  scheduler_dead_letter_queue_size: { means: "dead letters", unit: "count", to: "failures", place: "Failures" },
  dead_letter_queue_used: { means: "dead letters, as a share of how many are kept", unit: "share", to: "failures", place: "Failures" },
  tasks_pending: { means: "tasks that wait: for their time, for others, for a retry, or for a worker", unit: "count", to: "tasks", query: { q: "status:pending,blocked,ready,retrying" }, place: "Waiting tasks" },
  tasks_running: { means: "tasks that run", unit: "count", to: "tasks", query: { q: "status:running" }, place: "Running tasks" },
  scheduler_queue_size: { means: "tasks that are ready, in all queues", unit: "count", to: "queues", place: "Queues" },
  queue_age_seconds: { means: "for how long the oldest ready task has waited, of the queues that are not paused", unit: "seconds", to: "queues", place: "Queues" },
  schedule_lateness_seconds: { means: "how late the schedule is that should have fired first", unit: "seconds", to: "schedules", place: "Schedules" },
  workers_online: { means: "workers that are up", unit: "count", to: "workers", place: "Workers" },
  scheduler_worker_count: { means: "workers that are up", unit: "count", to: "workers", place: "Workers" },
  worker_utilization: { means: "the share of the slots of these workers that is taken", unit: "share", to: "workers", place: "Workers" },
  worker_heartbeat_age_seconds: { means: "how old the oldest of the workers' last heartbeats is", unit: "seconds", to: "workers", place: "Workers" },
  worker_cpu: { means: "the largest CPU share of a worker's process", unit: "cores", to: "workers", place: "Workers" },
  worker_memory_bytes: { means: "the largest memory of a worker's process", unit: "bytes", to: "workers", place: "Workers" },
  worker_loop_lag_seconds: { means: "how late the latest of the workers' event loops was", unit: "seconds", to: "workers", place: "Workers" },
  breakers_open: { means: "circuit breakers that hold tasks", unit: "count", to: "limits", place: "Breakers" },
  store_used: { means: "how full the store is: the memory of Redis, the disk of a SQLite file", unit: "share", to: "settings/store", place: "Store" },
};

/** What is known of a metric; one that a newer server has is shown without. */
export function metricOf(name: string): Metric | undefined {
  return METRICS[name];
}

/** A value of a metric in its own unit. */
export function formatMetric(name: string, value: number): string {
  switch (METRICS[name]?.unit) {
    case "share":
      return formatPercent(value);
    case "seconds":
      return formatDuration(value);
    case "bytes":
      return formatBytes(value);
    default:
      return formatFigure(value);
  }
}

const OPERATORS: Readonly<Record<string, string>> = { ">": ">", "<": "<", ">=": "≥", "<=": "≤", "==": "=" };

function formatThreshold(name: string, value: number): string {
  return METRICS[name]?.unit === "seconds" ? formatSpan(value) : formatMetric(name, value);
}

/** "dead_letters_added > 10 for 1 min". */
export function conditionOf(alert: Pick<Alert, "metric" | "operator" | "threshold" | "duration">): string {
  const held = alert.duration > 0 ? ` for ${formatSpan(alert.duration)}` : "";
  return `${alert.metric} ${OPERATORS[alert.operator] ?? alert.operator} ${formatThreshold(alert.metric, alert.threshold)}${held}`;
}

/** A duration that somebody wrote is usually a whole number of minutes or hours. */
export function formatSpan(seconds: number): string {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds >= 60 && seconds % 60 === 0) return `${seconds / 60} min`;
  return formatDuration(seconds);
}
