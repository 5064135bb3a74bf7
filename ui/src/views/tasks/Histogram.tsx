import { useResource, withQuery } from "../../api/resource";
import type { EndedSeries } from "../../api/types/tasks";
import { type HistogramPart, HistogramStrip } from "../../components/HistogramStrip";
import { tokenise } from "../../filter/tokens";
import { toMillis } from "../../format/times";
import type { ComponentChildren } from "preact";

interface Wanted {
  by: "all" | "type" | "queue";
  name: string;
  statuses: readonly string[];
}

/** What the counters can draw of a filter: all tasks, those of one type, or of one queue; null for any other. */
export function wantedOf(filter: string): Wanted | null {
  const tokens = tokenise(filter);
  if (tokens.some((token) => token.negated || token.comparison !== ":")) return null;
  const statuses = tokens.filter((token) => token.name === "status").flatMap((token) => token.values);
  const rest = tokens.filter((token) => token.name !== "status");
  const only = rest[0];
  if (!only) return { by: "all", name: "", statuses };
  if (rest.length > 1 || only.values.length > 1 || (only.name !== "type" && only.name !== "queue")) return null;
  return { by: only.name, name: only.values[0] ?? "", statuses };
}

const ENDS = ["dead", "failed", "cancelled", "success"] as const;
const TONES = { dead: "bad", failed: "bad", cancelled: "rest", success: "quiet" } as const;

function partsOf(line: EndedSeries["lines"][number] | undefined, wanted: Wanted): HistogramPart[] {
  if (!line) return [];
  const shown = ENDS.filter((end) => (wanted.statuses.length === 0 ? end === "success" || end === "dead" || line[end].some(Boolean) : wanted.statuses.includes(end)));
  return shown.map((end) => ({ label: end, tone: TONES[end], values: line[end] }));
}

/** How the tasks of the last hour ended, a bar a minute; only the counters are asked, never the tasks. */
export function Histogram({ filter, children }: { filter: () => string; children: ComponentChildren }) {
  const series = useResource<EndedSeries>(
    () => {
      const wanted = wantedOf(filter());
      return wanted && withQuery("stats/series", { minutes: 60, by: wanted.by });
    },
    { every: 15_000 },
  );
  const wanted = wantedOf(filter());
  const data = series.data.value;
  const parts = wanted && data ? partsOf(data.lines.find((line) => line.name === wanted.name), wanted) : [];
  if (!data || parts.length === 0) return <p class="list-sum">{children}</p>;
  return (
    <HistogramStrip starts={data.times.map(toMillis)} width={60_000} parts={parts} label="Tasks that ended in the last hour, by minute">
      {children}
    </HistogramStrip>
  );
}
