import type { TaskRow } from "../../api/types/tasks";
import { Bar, StatusPill } from "../../components/marks";
import { Duration } from "../../components/numbers";
import type { Column } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { priorityName, shortId } from "../../format/ids";
import { formatPercent } from "../../format/numbers";
import { toMillis } from "../../format/times";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { nowFor, secondTick, storeNow } from "../../state/clock";
import { zone } from "../../state/prefs";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { reasonOf } from "./reasons";

/** When a row last changed, as far as it tells. */
export function changedAt(row: TaskRow): string | number {
  if (row.finished_at) return row.finished_at;
  if (row.status === "running" && row.started_at) return row.started_at;
  if (row.started_at && row.execution_time !== null) return toMillis(row.started_at) + row.execution_time * 1000;
  return row.submitted_at;
}

/** When the wait for a worker began: when it was due, or submitted. */
function waitsSince(row: TaskRow): number {
  return Math.max(toMillis(row.submitted_at), toMillis(row.scheduled_at));
}

function WaitCell({ row }: { row: TaskRow }) {
  const since = waitsSince(row);
  const isWaiting = ["ready", "assigned", "blocked", "pending", "retrying"].includes(row.status);
  if (isWaiting) {
    if (since > storeNow()) return <span class="dim">–</span>;
    return <Duration seconds={Math.floor((nowFor(since) - since) / 1000)} />;
  }
  if (!row.started_at) return <span class="dim">–</span>;
  return <Duration seconds={Math.max(0, (toMillis(row.started_at) - since) / 1000)} />;
}

function RunCell({ row }: { row: TaskRow }) {
  if (row.status === "running" && row.started_at) {
    const since = toMillis(row.started_at);
    return <Duration seconds={Math.max(0, Math.floor((nowFor(since) - since) / 1000))} />;
  }
  return <Duration seconds={row.execution_time} />;
}

function ReasonCell({ row }: { row: TaskRow }) {
  // While its time is ahead the words count down with the clock.
  const isDue = row.status === "pending" || row.status === "retrying";
  const now = isDue ? nowFor(toMillis(row.scheduled_at)) : storeNow();
  const text = row.cancelling ? `was asked to stop, on ${row.worker_id ?? "its worker"}` : reasonOf(row, zone.value, now);
  return (
    <>
      {row.key && (
        <span class="on-phone">
          <Text>{row.key}</Text>
          {text && ", "}
        </span>
      )}
      {row.status === "running" && row.progress !== null && (
        <span class="progress-mark">
          <Bar share={row.progress} label={`${formatPercent(row.progress)} done`} />
        </span>
      )}
      <span class={row.status === "running" || row.status === "success" ? "mid" : undefined}>
        <Text>{text}</Text>
      </span>
    </>
  );
}

function attemptText(row: TaskRow): string {
  return row.max_retry === null ? String(row.attempt) : `${row.attempt} of ${row.max_retry + 1}`;
}

function priorityClass(priority: number): string {
  return priorityName(priority) === "high" ? "strong small" : "dim small";
}

/** All columns, in their order. `isUsual` ones show unless the reader chose others. */
export const COLUMNS: readonly (Column<TaskRow> & { isUsual: boolean })[] = [
  { id: "status", isUsual: true, label: "Status", width: "98px", phone: 2, cell: (row) => <StatusPill status={row.status} /> },
  { id: "type", isUsual: true, label: "Type", width: "128px", cut: true, phone: 1, title: (row) => plainText(row.type), cell: (row) => <Link to={pathOf("tasks", row.id)}><Text>{row.type}</Text></Link> },
  { id: "id", isUsual: true, label: "Id", width: "94px", class: "mono", title: (row) => plainText(row.id), cut: true, cell: (row) => <Text>{shortId(row.id)}</Text> },
  { id: "key", isUsual: true, label: "Key", width: "98px", class: "mid", cut: true, title: (row) => plainText(row.key ?? ""), cell: (row) => <Text>{row.key}</Text> },
  { id: "queue", isUsual: true, label: "Queue", width: "84px", class: "mid", cut: true, title: (row) => plainText(row.queue), cell: (row) => <Text>{row.queue}</Text> },
  { id: "priority", isUsual: true, label: "Priority", width: "62px", title: (row) => `Priority ${row.priority}`, cell: (row) => <span class={priorityClass(row.priority)}>{priorityName(row.priority)}</span> },
  { id: "attempt", isUsual: true, label: "Attempt", num: true, width: "68px", cell: attemptText },
  { id: "wait", isUsual: true, label: "Wait", num: true, width: "96px", cell: (row) => <WaitCell row={row} /> },
  { id: "run", isUsual: true, label: "Run", num: true, width: "82px", cell: (row) => <RunCell row={row} /> },
  { id: "why", isUsual: true, label: "Worker, or why it waits", cut: true, phone: 3, title: (row) => plainText(row.why ?? row.error ?? row.worker_id ?? ""), cell: (row) => <ReasonCell row={row} /> },
  { id: "tags", isUsual: false, label: "Tags", width: "150px", class: "mid small", cut: true, title: (row) => plainText(tagText(row)), cell: (row) => <Text>{tagText(row)}</Text> },
  { id: "schedule", isUsual: false, label: "Schedule", width: "110px", class: "mid", cut: true, cell: (row) => row.schedule_id && <Link to={pathOf("schedules", row.schedule_id)}><Text>{row.schedule_id}</Text></Link> },
  { id: "submitted", isUsual: false, label: "Submitted", num: true, width: "92px", class: "mid", cell: (row) => <TimeAgo at={row.submitted_at} form="age" /> },
  { id: "due", isUsual: false, label: "Due", num: true, width: "92px", class: "mid", cell: (row) => <TimeAgo at={row.scheduled_at} form="near" /> },
  { id: "changed", isUsual: true, label: "Changed", num: true, width: "82px", class: "dim", phone: 4, cell: (row) => <TimeAgo at={Math.min(toMillis(changedAt(row)), secondTick.peek())} form="age" /> },
];

function tagText(row: TaskRow): string {
  return Object.entries(row.tags).map(([name, value]) => `${name}:${value}`).join(" ");
}

export const USUAL_COLUMNS = COLUMNS.filter((column) => column.isUsual).map((column) => column.id).join(",");

/** The columns that the address asks for, in their own order; the type is always there, since it leads to the task. */
export function columnsOf(text: string): readonly Column<TaskRow>[] {
  const wanted = new Set(text.split(","));
  return COLUMNS.filter((column) => column.id === "type" || wanted.has(column.id));
}
