/** Workers, as the API sends them. */

export type WorkerStatus = "idle" | "busy" | "draining" | "offline";

export interface WorkerInfo {
  id: string;
  status: WorkerStatus;
  node: string;
  host: string;
  pid: number;
  /** Where it is called, if it is outside of the nodes. */
  address: string;
  version: string;
  queues: string[];
  task_types: string[];
  labels: Record<string, string>;
  weight: number;
  capacity: number;
  running: number;
  /** Handlers that could not be stopped. */
  leaked: number;
  /** 1 is one core; 0 where it is not known, as memory and loop lag. */
  cpu: number;
  memory: number;
  loop_lag: number;
  started_at: string;
  beat_at: string;
  expires_at: string;
  lost_at: string | null;
  /** What it was asked to do, such as `capacity=20 drain`, and what of it it does already. */
  order: string;
  follows: string;
}

/** The workers by name, those that were lost in the last hour among them. */
export interface WorkerList {
  items: WorkerInfo[];
  leader: string | null;
  term: number | null;
}

/** A task that runs, as far as the views of workers show it. */
export interface RunningTask {
  id: string;
  type: string;
  queue: string;
  attempt: number;
  max_retry: number | null;
  started_at: string | null;
  worker_id: string | null;
  key: string | null;
  progress: number | null;
  cancelling: boolean;
}

/** A worker and what it runs, the longest first. */
export interface WorkerView {
  worker: WorkerInfo;
  running: RunningTask[];
}

/** A page of tasks that run. */
export interface RunningPage {
  items: RunningTask[];
  cursor: string | null;
}
