import { get, post } from "../../api/client";
import type { Status } from "../../api/types";
import type { BulkAction, BulkPreview, BulkRun, BulkWanted } from "../../api/types/tasks";
import { runWithUndo, type ToastHandle } from "../../components/toasts";
import { valuesOf, withToken } from "../../filter/tokens";
import { formatBounded, formatCount } from "../../format/numbers";
import { idFilters } from "./ids";

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

/** What a bulk action is done to: chosen rows, or all that a filter matches. */
export interface Target {
  ids: readonly string[] | null;
  filter: string;
  statuses: readonly Status[];
}

export type Options = Pick<BulkWanted, "force" | "cascade" | "rate" | "delay">;

export function actionsFor(statuses: readonly Status[]): BulkAction[] {
  return (Object.keys(VERBS) as BulkAction[]).filter((action) => VERBS[action].possible.some((status) => statuses.includes(status)));
}

/** The filters that name the target; an empty one would mean every task, and is refused, so it names the statuses. */
function filtersOf(action: BulkAction, target: Target): string[] {
  if (target.ids) return idFilters(target.ids).map((filter) => `${filter} status:${VERBS[action].possible.join(",")}`);
  if (valuesOf(target.filter, "status").length > 0) return [target.filter];
  const usual = VERBS[action].possible.filter((status) => status !== "running" && !(action === "retry" && (status === "success" || status === "cancelled")));
  return [withToken(target.filter, "status", usual)];
}

export interface Previewed {
  parts: readonly BulkPreview[];
  count: number;
  isBound: boolean;
}

export async function previewBulk(action: BulkAction, target: Target, options: Options, signal: AbortSignal): Promise<Previewed> {
  const wanted = filtersOf(action, target).map((filter) => post<BulkPreview>("bulk/preview", { action, filter, ...options } satisfies BulkWanted, { signal }));
  const parts = await Promise.all(wanted);
  return { parts, count: parts.reduce((sum, part) => sum + part.count, 0), isBound: parts.some((part) => part.at_least) };
}

const POLL_EVERY = 500;

async function runOne(handle: string, tell: (run: BulkRun) => void): Promise<BulkRun> {
  let run = await post<BulkRun>("bulk", { preview: handle });
  while (run.state === "running") {
    await new Promise((resolve) => setTimeout(resolve, POLL_EVERY));
    run = await get<BulkRun>(`bulk/${encodeURIComponent(run.id)}`);
    tell(run);
  }
  return run;
}

/** Where to look at what came of it. */
function outcomeQuery(action: BulkAction, target: Target): string | null {
  const { leadsTo } = VERBS[action];
  if (leadsTo === null) return null;
  if (target.ids) return idFilters(target.ids)[0] ?? null;
  return withToken(target.filter, "status", leadsTo);
}

function outcomeText(action: BulkAction, runs: readonly BulkRun[]): string {
  const done = runs.reduce((sum, run) => sum + run.done, 0);
  const refused = runs.reduce((sum, run) => sum + run.refused, 0) - (action === "reschedule" ? done : 0);
  const why = runs.flatMap((run) => run.errors)[0];
  const stopped = runs.some((run) => run.state === "stopped") ? " It was stopped." : "";
  const failed = runs.some((run) => run.state === "failed") ? " It could not be finished." : "";
  const rest = refused > 0 ? `, ${formatCount(refused)} could not be` : "";
  return `${formatCount(done)} ${VERBS[action].done}${rest}.${stopped}${failed}${why ? ` ${why}` : ""}`;
}

/** Begins five seconds from now, and tells how far it is. */
export function beginBulk(action: BulkAction, target: Target, previewed: Previewed, ended: () => void): void {
  const verb = VERBS[action];
  const what = `${verb.doing} ${formatBounded(previewed.count, previewed.isBound)} ${previewed.count === 1 ? "task" : "tasks"}${verb.after}`;
  const work = async (handle: ToastHandle) => {
    const runs: BulkRun[] = [];
    for (const part of previewed.parts.filter((one) => one.count > 0)) {
      const before = runs.reduce((sum, run) => sum + run.done + run.refused, 0);
      runs.push(await runOne(part.preview, (run) => handle.update({ text: what, progress: { done: Math.min(before + run.done, previewed.count), total: previewed.count }, seconds: 0 })));
    }
    const q = outcomeQuery(action, target);
    const isWell = runs.every((run) => run.state === "done");
    handle.update({
      text: outcomeText(action, runs),
      tone: isWell ? "good" : "bad",
      seconds: isWell ? 12 : 0,
      ...(q === null ? {} : { link: { label: "Show them", to: "tasks", query: { q } } }),
    });
    ended();
  };
  runWithUndo({ text: what, run: work });
}
