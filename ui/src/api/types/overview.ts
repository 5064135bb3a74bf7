import type { FailureGroup } from "./failures";
import type { QueueRow, QueueStats } from "./queues";
import type { SeriesView } from "./reports";
import type { StatusCounts } from "../types";

export interface HealthCheck {
  status: "ok" | "warning" | "error";
  message: string;
}

export interface Health {
  status: "healthy" | "degraded" | "unhealthy";
  timestamp: string;
  checks: Record<string, HealthCheck>;
}

export interface ServerStatus {
  namespace: string;
  store: string;
  version: string;
  time: string;
  leader: string | null;
  term: number | null;
  workers: number;
  slots: number;
  busy: number;
  tasks: StatusCounts;
  queues: QueueStats;
  dropped_dead_letters: number;
  health: Health;
}

/** One thing to look at. `level` is whose turn it is: `bad` is yours, `heal` heals itself or is held, `rest` is over. */
export interface Attention {
  level: "bad" | "heal" | "rest";
  kind: "breaker" | "dead" | "queue" | "type" | "worker" | "schedule" | "alert" | "switch" | "workers";
  title: string;
  text: string;
  /** For a breaker when it tries again, for dead letters the last, else since when. */
  at: string | null;
  /** A path of the dashboard; the name in it is not escaped. */
  link: string;
}

export interface Overview {
  status: ServerStatus;
  attention: Attention[];
  series: SeriesView;
  queues: QueueRow[];
  failures: FailureGroup[];
  /** Tasks at limits, breakers and switches. */
  held: number;
  /** Workers, in the last hour. */
  lost: number;
}
