import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { TaskRow } from "../api/types/tasks";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { FilterBar } from "../components/FilterBar";
import { Menu } from "../components/Menu";
import { Table } from "../components/Table";
import { tokenise, withoutToken } from "../filter/tokens";
import { formatBounded, formatCount } from "../format/numbers";
import { useKeys } from "../keys/registry";
import { pathOf } from "../router/location";
import { useQueryParam } from "../router/query";
import { countOf } from "../state/counts";
import { plainText } from "../text/split";
import { Bulk } from "./tasks/Bulk";
import { COLUMNS, columnsOf, USUAL_COLUMNS } from "./tasks/columns";
import { ExportMenu } from "./tasks/ExportMenu";
import { Histogram } from "./tasks/Histogram";
import { type Changes, PAGE_SIZE, type TaskList, useTaskList } from "./tasks/list";
import { LIST_QUALIFIERS, valuesFor } from "./tasks/qualifiers";
import { StatusTabs } from "./tasks/StatusTabs";
import { ViewsMenu } from "./tasks/ViewsMenu";
import "../styles/views/tasks.css";

export default function TasksView() {
  const filter = useQueryParam("q");
  const shown = useQueryParam("cols", USUAL_COLUMNS);
  const list = useTaskList(() => filter.value);
  const selection = useSignal<ReadonlySet<string>>(new Set());
  const q = filter.value;
  useEffect(() => {
    selection.value = new Set();
  }, [q]);
  const mistake = list.first.error.value?.status === 400 ? list.first.error.value : null;
  const at = mistake?.extra.position;
  const total = totalOf(list);
  return (
    <>
      <StatusTabs filter={q} />
      <div class="filter">
        <FilterBar
          label="Filter tasks"
          value={q}
          onChange={(text) => filter.set(text)}
          qualifiers={LIST_QUALIFIERS}
          values={valuesFor}
          error={mistake?.detail ?? null}
          errorAt={typeof at === "number" ? at : null}
        />
        <ViewsMenu filter={q} onChoose={(text) => filter.set(text)} />
        <ColumnsMenu shown={shown.value} onChange={(text) => shown.set(text, "replace")} />
        <ExportMenu filter={q} isWrong={mistake !== null} />
      </div>
      <Histogram filter={() => filter.value}>
        <Sum list={list} total={total} />
      </Histogram>
      {mistake ? (
        <Card>
          <EmptyState>Nothing is listed while the filter has a mistake.</EmptyState>
        </Card>
      ) : (
        <List list={list} q={q} shown={shown.value} selection={selection} total={total} onFilter={(text) => filter.set(text)} />
      )}
      <Bulk filter={q} rows={list.rows.value} selection={selection} total={total} onEnd={list.refresh} />
    </>
  );
}

/** How many match, where it is known: from the counters, or because the list ends here. */
function totalOf(list: TaskList): number | null {
  if (list.cursor.value === null && list.first.data.value) return list.rows.value.length;
  return list.first.data.value?.total ?? null;
}

function Sum({ list, total }: { list: TaskList; total: number | null }) {
  if (!list.first.data.value) return <>{"\u00a0"}</>;
  const count = list.rows.value.length;
  if (total !== null) {
    return (
      <>
        <b>{formatCount(total)}</b> {total === 1 ? "task" : "tasks"}
      </>
    );
  }
  return (
    <>
      at least <b>{formatCount(count)}</b> {count === 1 ? "task" : "tasks"} <span class="dim">of {formatCount(list.looked.value)} looked at</span>
    </>
  );
}

function ColumnsMenu({ shown, onChange }: { shown: string; onChange: (shown: string) => void }) {
  const chosen = new Set(shown.split(","));
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChange(COLUMNS.filter((column) => next.has(column.id)).map((column) => column.id).join(","));
  };
  const entries = COLUMNS.filter((column) => column.id !== "type").map((column) => ({ label: column.label, checked: chosen.has(column.id), run: () => toggle(column.id) }));
  return (
    <span class="no-phone">
      <Menu label="Columns" entries={[...entries, { label: "The usual ones", apart: true, run: () => onChange(USUAL_COLUMNS) }]}>
        Columns
      </Menu>
    </span>
  );
}

interface ListProps {
  list: TaskList;
  q: string;
  shown: string;
  selection: Signal<ReadonlySet<string>>;
  total: number | null;
  onFilter: (filter: string) => void;
}

function List({ list, q, shown, selection, total, onFilter }: ListProps) {
  const rows = list.rows.value;
  const isEmpty = list.first.data.value !== null && rows.length === 0;
  return (
    <Card of={list.first} class="task-list">
      <Newer changes={list.changes.value} onShow={list.refresh} />
      {isEmpty ? (
        <Nothing list={list} q={q} onFilter={onFilter} />
      ) : (
        <Table<TaskRow>
          label="Tasks"
          rows={rows}
          columns={columnsOf(shown)}
          rowKey={(row) => row.id}
          rowTo={(row) => pathOf("tasks", row.id)}
          selection={selection}
          {...(total === null ? {} : { total })}
          foot={list.cursor.value !== null && <More list={list} />}
        />
      )}
    </Card>
  );
}

function More({ list }: { list: TaskList }) {
  return (
    <Button small off={list.isLoadingMore.value ? "They are being read." : null} onClick={() => void list.loadMore()}>
      Show {PAGE_SIZE} more
    </Button>
  );
}

/** Nothing moves unless asked: what would come in, or would no longer be here, is counted. */
function Newer({ changes, onShow }: { changes: Changes; onShow: () => void }) {
  const { entered, left, isBound } = changes;
  useKeys([{ keys: ".", text: "Show what is newer", group: "List", when: () => entered + left > 0, run: onShow }]);
  if (entered + left === 0) return null;
  const come = entered > 0 ? `${formatBounded(entered, isBound)} newer ${entered === 1 ? "task" : "tasks"}` : "";
  const gone = left > 0 ? `${formatCount(left)} ${left === 1 ? "has" : "have"} left this list` : "";
  return (
    <button type="button" class="fresh" onClick={onShow}>
      {[come, gone].filter(Boolean).join(", ")} <b>{entered > 0 ? "Show them" : "Show it as it is"}</b> <kbd class="no-phone">.</kbd>
    </button>
  );
}

function Nothing({ list, q, onFilter }: { list: TaskList; q: string; onFilter: (filter: string) => void }) {
  if (list.isLoadingMore.value) return <EmptyState>Looking on: {formatCount(list.looked.value)} tasks so far.</EmptyState>;
  if (list.cursor.value !== null) {
    return (
      <EmptyState action={<Button onClick={() => void list.loadMore()}>Look on</Button>}>
        None of the first {formatCount(list.looked.value)} tasks matches. There are more to look at.
      </EmptyState>
    );
  }
  if (q === "") return <EmptyState line={"tickwork submit greet '\"Ada\"'"}>{countOf() > 0 ? "The tasks are being read." : "No task yet. Submit one:"}</EmptyState>;
  const tokens = tokenise(q);
  return (
    <EmptyState
      action={
        <div class="btn-row">
          {tokens.map((token, at) => (
            <Button key={at} onClick={() => onFilter(withoutToken(q, at))}>
              Without {plainText(token.raw.length > 40 ? `${token.raw.slice(0, 40)}…` : token.raw)}
            </Button>
          ))}
        </div>
      }
    >
      No task matches.
    </EmptyState>
  );
}
