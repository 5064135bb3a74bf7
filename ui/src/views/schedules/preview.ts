import { useEffect, useState } from "preact/hooks";
import { post } from "../../api/client";
import { isAborted, textOfError } from "../../api/errors";
import type { LinePreview } from "../../api/types/schedules";

const DEBOUNCE = 150;
const DAY = 86_400_000;
const MOST = 100;

/** What the server makes of a line, asked anew after each key stroke. The last answer stays until the next. */
export function useLinePreview(cron: string, timezone: string, dst: string): LinePreview | null {
  const [preview, setPreview] = useState<LinePreview | null>(null);
  useEffect(() => {
    if (cron.trim() === "") return setPreview(null);
    const control = new AbortController();
    const timer = setTimeout(() => {
      const body = { cron, dst, count: MOST, ...(timezone.trim() ? { timezone: timezone.trim() } : {}) };
      post<LinePreview>("schedules/preview", body, { signal: control.signal }).then(setPreview, (error: unknown) => {
        if (!isAborted(error)) setPreview({ description: "", timezone, runs: [], problem: textOfError(error) });
      });
    }, DEBOUNCE);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [cron, timezone, dst]);
  return preview;
}

/** What is wrong with the line, and what with the zone: the server says it in one text. */
export function problemsOf(preview: LinePreview | null): { cron: string | null; timezone: string | null } {
  const problem = preview?.problem ?? null;
  const isZone = problem !== null && /^unknown time zone/i.test(problem);
  return { cron: isZone ? null : problem, timezone: isZone ? problem : null };
}

/** Runs in the 24 hours from now; `isBound` if there may be more than the preview shows. */
export function runsADay(preview: LinePreview | null, now: number): { count: number; isBound: boolean } {
  const runs = preview?.runs ?? [];
  const count = runs.filter((run) => Date.parse(run.at) - now < DAY).length;
  return { count, isBound: count === MOST };
}
