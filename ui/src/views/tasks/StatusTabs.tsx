import type { Status } from "../../api/types";
import { type Tab, Tabs } from "../../components/Tabs";
import { valuesOf, withToken } from "../../filter/tokens";
import { countOf, statusCounts } from "../../state/counts";

const ALWAYS: readonly Status[] = ["ready", "running", "retrying", "pending", "blocked", "success", "dead", "cancelled"];
/** Most stores never have these, so they show only where there are some. */
const RARE: readonly Status[] = ["assigned", "failed"];

const ORDER: readonly Status[] = ["ready", "assigned", "running", "retrying", "pending", "blocked", "success", "failed", "dead", "cancelled"];

/** The statuses with their counts. A tab changes the status of the filter and leaves the rest of it. */
export function StatusTabs({ filter }: { filter: string }) {
  const chosen = valuesOf(filter, "status");
  const counts = statusCounts.value;
  const isKnown = Object.keys(counts).length > 0;
  const shown = ORDER.filter((status) => ALWAYS.includes(status) || (RARE.includes(status) && ((counts[status] ?? 0) > 0 || chosen.includes(status))));
  const tabs: Tab[] = shown.map((status) => ({
    label: status,
    to: "tasks",
    query: { q: withToken(filter, "status", [status]) },
    status,
    count: isKnown ? (counts[status] ?? 0) : null,
    current: chosen.length === 1 && chosen[0] === status,
  }));
  const all: Tab = { label: "All", to: "tasks", query: { q: withToken(filter, "status", []) }, count: isKnown ? countOf() : null, current: chosen.length === 0 };
  return <Tabs label="Status" tabs={[all, ...tabs]} />;
}
