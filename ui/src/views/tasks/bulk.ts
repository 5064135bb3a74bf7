import { get, post } from "../../api/client";
import type { Status } from "../../api/types";
import type { BulkAction, BulkPreview, BulkRun, BulkWanted } from "../../api/types/tasks";
import { runWithUndo, type ToastHandle } from "../../components/toasts";
import { valuesOf, withToken } from "../../filter/tokens";
import { formatBounded } from "../../format/numbers";
import { idFilters } from "./ids";
import { outcomeText, VERBS } from "./verbs";

/** What a bulk action is done to: chosen rows, or all that a filter matches. */
export interface Target {
  ids: readonly string[] | null;
  filter: string;
  statuses: readonly Status[];
}

export type Options = Pick<BulkWanted, "force" | "cascade" | "rate" | "delay">;

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

/** Begins five seconds from now, and tells how far it is. */
export function beginBulk(action: BulkAction, target: Target, previewed: Previewed, ended: () => void): void {
  const verb = VERBS[action];
  const what = `${verb.doing} ${formatBounded(previewed.count, previewed.isBound)} ${previewed.count === 1 ? "task" : "tasks"}${verb.after}`;
  const work = async (handle: ToastHandle) => {
    const runs: BulkRun[] = [];
    for (const part of previewed.parts.filter((one) => one.count > 0)) {
      const before = runs.reduce((sum, run) => sum + run.done + run.refused, 0);
      runs.push(await runOne(part.preview, (run) => handle.update({ text: what, progress: { done: Math.min(before + run.done + run.refused, previewed.count), total: previewed.count }, seconds: 0 })));
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
