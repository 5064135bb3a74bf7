import { get, post } from "../../api/client";
import type { BulkPreview, BulkRun } from "../../api/types/failures";
import type { ToastHandle } from "../../components/toasts";
import { formatCount } from "../../format/numbers";
import type { QueryValues } from "../../router/location";

export interface GroupAction {
  action: "retry" | "delete";
  /** "retried", "removed". */
  did: string;
  group: string;
  /** Tasks a second at most. */
  rate?: number;
}

export function groupFilter(id: string): string {
  return `group:${id}`;
}

export function previewGroup(wanted: GroupAction, signal: AbortSignal): Promise<BulkPreview> {
  const body = { action: wanted.action, filter: groupFilter(wanted.group), ...(wanted.rate ? { rate: wanted.rate } : {}) };
  return post<BulkPreview>("bulk/preview", body, { signal });
}

const ASK_EVERY = 500;

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
}

/** "31 retried, 3 could not be: …". */
function outcomeText(run: BulkRun, did: string): string {
  const parts = [`${formatCount(run.done)} ${did}`];
  if (run.refused > 0) parts.push(`${formatCount(run.refused)} could not be`);
  const ending = run.state === "stopped" ? " It was stopped." : run.state === "failed" ? " It broke off." : "";
  const why = run.errors[0] ? ` ${run.errors[0].replace(/\.$/, "")}.` : "";
  return `${parts.join(", ")}.${ending}${why}`;
}

/** Does what a preview has shown, and tells of it in the toast until it has ended. */
export async function runGroup(wanted: GroupAction, handle: string, toast: ToastHandle, link?: { label: string; to: string; query?: QueryValues }): Promise<BulkRun> {
  let run = await post<BulkRun>("bulk", { preview: handle });
  while (run.state === "running") {
    toast.update({ text: `${wanted.did.charAt(0).toUpperCase()}${wanted.did.slice(1)} so far`, progress: { done: run.done, total: Math.max(run.expected, 1) }, seconds: 0 });
    await pause();
    run = await get<BulkRun>(`bulk/${encodeURIComponent(run.id)}`);
  }
  const tone = run.state === "done" && run.refused === 0 ? "good" : run.state === "done" ? "heal" : "bad";
  toast.update({ text: outcomeText(run, wanted.did), tone, seconds: 12, ...(link && run.done > 0 ? { link } : {}) });
  return run;
}
