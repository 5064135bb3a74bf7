import { del, post } from "../../api/client";
import type { Status } from "../../api/types";
import type { TaskView } from "../../api/types/tasks";
import { pathOf } from "../../router/location";

const WAITING: readonly Status[] = ["pending", "blocked", "ready", "assigned", "retrying"];
const ENDED: readonly Status[] = ["success", "failed", "dead", "cancelled"];

export function isWaiting(task: TaskView): boolean {
  return WAITING.includes(task.status);
}

export function hasEnded(task: TaskView): boolean {
  return ENDED.includes(task.status);
}

/** What the transition table allows for a task now. */
export function allowed(task: TaskView) {
  return {
    retry: hasEnded(task),
    runNow: task.status === "pending" || task.status === "retrying",
    reschedule: isWaiting(task) && task.status !== "blocked",
    cancel: !hasEnded(task) && !(task.status === "running" && task.cancelling),
    remove: hasEnded(task),
  };
}

const at = (task: TaskView, verb: string) => `${pathOf("tasks", task.id)}/${verb}`;

export const cancelTask = (task: TaskView) => post<TaskView>(at(task, "cancel"), { force: task.status === "running" });
export const retryTask = (task: TaskView, cascade: boolean) => post<TaskView>(at(task, "retry"), { cascade });
export const runTaskNow = (task: TaskView) => post<TaskView>(at(task, "run-now"));
export const rescheduleTask = (task: TaskView, to: { at?: string; delay?: number }) => post<TaskView>(at(task, "reschedule"), to);
export const deleteTask = (task: TaskView) => del(pathOf("tasks", task.id));
