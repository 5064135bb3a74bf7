import { useResource } from "../api/resource";
import type { FailureGroup, FailureGroups } from "../api/types/failures";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { FilterBar } from "../components/FilterBar";
import { Fresh } from "../components/Fresh";
import { Count } from "../components/numbers";
import { Segments } from "../components/Segments";
import { formatCount } from "../format/numbers";
import { useKeys } from "../keys/registry";
import { navigate, pathOf, setQuery } from "../router/location";
import { useQueryParam } from "../router/query";
import { minuteTick } from "../state/clock";
import { readerIsBusy } from "../state/interaction";
import { byType, FAILURE_QUALIFIERS, narrow } from "./failures/filter";
import { GroupDetail } from "./failures/GroupDetail";
import { GroupTable, TypeTable } from "./failures/GroupTable";
import { LetterTable } from "./failures/LetterTable";
import { useSettledOrder } from "./failures/order";
import "../styles/views/failures.css";

type By = "error" | "type" | "list";
const WAYS: readonly { value: By; label: string }[] = [
  { value: "error", label: "By error" },
  { value: "type", label: "By type" },
  { value: "list", label: "List" },
];
const MOST_GROUPS = 500;
const BESIDE = "(min-width: 1100.02px)";

export default function FailuresView() {
  const by = useQueryParam("by", "error");
  const filter = useQueryParam("q");
  const open = useQueryParam("group");
  const failures = useResource<FailureGroups>(() => `failures?limit=${MOST_GROUPS}`, { every: 5000 });
  const order = useSettledOrder(failures.data.value?.items ?? null, (group) => group.id);
  const groups = narrow(order.items, filter.value, minuteTick.value);
  const chosen = groups.find((group) => group.id === open.value) ?? groups[0];
  // Where there is no room beside the list, a group has its own page.
  const openGroup = (group: FailureGroup) => (matchMedia(BESIDE).matches ? open.set(group.id, "replace") : navigate(pathOf("failures", group.id)));
  useKeys([{ keys: "r", text: "Retry the dead letters of the open error", group: "This view", when: () => by.value === "error", run: () => document.querySelector<HTMLElement>(".plan .btn.prime")?.click() }]);
  return (
    <>
      <Summary of={failures.data.value} />
      <div class="failure-tools">
        {by.value !== "list" && (
          <FilterBar
            label="Filter failures"
            placeholder="Filter: type: error: place: is:"
            value={filter.value}
            onChange={(text) => filter.set(text)}
            qualifiers={FAILURE_QUALIFIERS}
            values={(name, start) => Promise.resolve(valuesOf(order.items, name, start))}
          />
        )}
        <Segments label="Show" options={WAYS} value={by.value as By} onChange={(value) => by.set(value)} />
      </div>
      {by.value === "list" ? (
        <LetterTable />
      ) : (
        <div class={by.value === "error" && groups.length > 0 ? "split" : undefined}>
          <Card of={failures}>
            {!readerIsBusy.value && <Fresh count={order.fresh} what={order.fresh === 1 ? "new error." : "new errors."} onShow={order.show} />}
            {by.value === "type" && groups.length > 0 && <TypeTable rows={byType(groups)} onOpen={(row) => setQuery({ by: null, q: `type:${row.type}` })} />}
            {by.value === "error" && groups.length > 0 && <GroupTable groups={groups} chosen={chosen?.id ?? ""} onOpen={openGroup} />}
            {groups.length === 0 && <Nothing isFiltered={filter.value !== ""} all={order.items.length} onClear={() => filter.set("")} />}
          </Card>
          {by.value === "error" && chosen && (
            <div class="pane">
              <GroupDetail key={chosen.id} group={chosen} onChanged={() => void failures.refresh()} />
            </div>
          )}
        </div>
      )}
    </>
  );
}

function Summary({ of }: { of: FailureGroups | null }) {
  if (!of) return <div class="sumline">&nbsp;</div>;
  const isCut = of.items.length >= MOST_GROUPS;
  return (
    <div class="sumline">
      <span>
        <b>
          <Count value={of.dead} to="tasks" query={{ q: "status:dead" }} dimZero={false} />
        </b>{" "}
        dead {of.dead === 1 ? "letter" : "letters"} of at most {formatCount(of.most)}
      </span>
      <span>
        <b>
          <Count value={of.items.length} isBound={isCut} dimZero={false} />
        </b>{" "}
        {of.items.length === 1 ? "error" : "errors"}
      </span>
      <span>
        <b>
          <Count value={of.retrying} to="tasks" query={{ q: "status:retrying" }} dimZero={false} />
        </b>{" "}
        {of.retrying === 1 ? "task" : "tasks"} still retrying
      </span>
    </div>
  );
}

function Nothing({ isFiltered, all, onClear }: { isFiltered: boolean; all: number; onClear: () => void }) {
  if (!isFiltered || all === 0) return <EmptyState>No dead letters. Tasks whose retries are spent come here.</EmptyState>;
  return <EmptyState action={<Button onClick={onClear}>Take the filter away</Button>}>No error matches. {formatCount(all)} {all === 1 ? "is" : "are"} there without the filter.</EmptyState>;
}

const MOST_VALUES = 8;

/** The names that the groups themselves have, with the attempts that failed. */
function valuesOf(groups: readonly FailureGroup[], name: string, start: string) {
  const counts = new Map<string, number>();
  for (const group of groups) {
    const names = name === "type" ? group.types : name === "error" ? [group.error] : name === "place" ? [group.place] : [];
    for (const one of names) if (one.toLowerCase().startsWith(start.toLowerCase()) && one) counts.set(one, (counts.get(one) ?? 0) + group.total);
  }
  return [...counts]
    .sort((one, other) => other[1] - one[1])
    .slice(0, MOST_VALUES)
    .map(([text, count]) => ({ text, count }));
}
