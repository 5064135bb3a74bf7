import type { Status } from "../../api/types";
import type { BulkAction, BulkRun } from "../../api/types/tasks";
import { formatCount } from "../../format/numbers";

interface Verb {
  /** On buttons: "Cancel 412 tasks". */
  name: string;
  /** What follows the number: "Run 3 tasks now". */
  after: string;
  doing: string;
  done: string;
  /** Statuses that the transition table allows it for. */
  possible: readonly Status[];
  /** Where the tasks are afterwards; null for gone. */
  leadsTo: readonly Status[] | null;
}

const WAITING: readonly Status[] = ["ready", "assigned", "retrying", "pending", "blocked"];
const ENDED: readonly Status[] = ["dead", "failed", "cancelled", "success"];

export const VERBS: Readonly<Record<BulkAction, Verb>> = {
  retry: { name: "Retry", after: "", doing: "Retries", done: "sent back to run", possible: ENDED, leadsTo: [] },
  run_now: { name: "Run", after: " now", doing: "Runs", done: "sent to run", possible: ["pending", "retrying"], leadsTo: [] },
  reschedule: { name: "Reschedule", after: "", doing: "Reschedules", done: "rescheduled", possible: ["pending", "retrying", "ready", "assigned"], leadsTo: ["pending", "retrying"] },
  cancel: { name: "Cancel", after: "", doing: "Cancels", done: "cancelled", possible: [...WAITING, "running"], leadsTo: ["cancelled"] },
  delete: { name: "Delete", after: "", doing: "Deletes", done: "deleted", possible: ENDED, leadsTo: null },
};

export function actionsFor(statuses: readonly Status[]): BulkAction[] {
  return (Object.keys(VERBS) as BulkAction[]).filter((action) => VERBS[action].possible.some((status) => statuses.includes(status)));
}

/** "409 cancelled, 3 could not be." */
export function outcomeText(action: BulkAction, runs: readonly BulkRun[]): string {
  const done = runs.reduce((sum, run) => sum + run.done, 0);
  const refused = runs.reduce((sum, run) => sum + run.refused, 0);
  const why = runs.flatMap((run) => run.errors)[0];
  const stopped = runs.some((run) => run.state === "stopped") ? " It was stopped." : "";
  const failed = runs.some((run) => run.state === "failed") ? " It could not be finished." : "";
  const rest = refused > 0 ? `, ${formatCount(refused)} could not be` : "";
  return `${formatCount(done)} ${VERBS[action].done}${rest}.${stopped}${failed}${why ? ` ${why}` : ""}`;
}
