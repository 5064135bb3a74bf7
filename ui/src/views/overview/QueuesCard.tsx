import type { QueueRow } from "../../api/types/queues";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Count, Duration } from "../../components/numbers";
import { Sparkline } from "../../components/Sparkline";
import { type Column, Table } from "../../components/Table";
import { tokenText } from "../../filter/tokens";
import { formatCount, formatFigure } from "../../format/numbers";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { heldOf, openOf, QueueState } from "../queues/state";

const MOST = 8;

export function tasksOf(queue: QueueRow, status: string): { q: string } {
  return { q: `status:${status} ${tokenText("queue", [queue.name])}` };
}

export function RunningCount({ queue }: { queue: QueueRow }) {
  return <Count value={queue.running} to="tasks" query={tasksOf(queue, "running")} />;
}

/** The tasks behind a number of held ones. Those of a pause are ready, as those are that nobody can start. */
export function heldTasks(queue: QueueRow): { q: string } {
  if (queue.holds.length === 0) return tasksOf(queue, "ready");
  return { q: `waits:limit,breaker,switch ${tokenText("queue", [queue.name])}` };
}

/** A number that somebody holds on purpose: amber, unless it is nothing. */
export function HeldCount({ queue }: { queue: QueueRow }) {
  const held = heldOf(queue);
  return <span class={held > 0 ? "c-heal" : undefined}><Count value={held} to="tasks" query={heldTasks(queue)} /></span>;
}

const columns: readonly Column<QueueRow>[] = [
  { id: "name", label: "Queue", phone: 1, cut: true, title: (row) => row.name, cell: (row) => <Link to={pathOf("queues", row.name)}><Text>{row.name}</Text></Link> },
  { id: "ready", label: "Ready", num: true, width: "58px", phone: 3, cell: (row) => <ReadyCell queue={row} /> },
  { id: "held", label: "Held", num: true, width: "54px", cell: (row) => <HeldCount queue={row} /> },
  { id: "running", label: "Running", num: true, width: "66px", cell: (row) => <RunningCount queue={row} /> },
  { id: "oldest", label: "Oldest", num: true, width: "84px", phone: 4, cell: (row) => <Duration seconds={row.latency} /> },
  { id: "in", label: "In/min", num: true, width: "56px", cell: (row) => formatFigure(Math.round(row.in_rate)) },
  { id: "out", label: "Out/min", num: true, width: "64px", cell: (row) => formatFigure(Math.round(row.out_rate)) },
  { id: "done", label: "Done, 1 h", width: "80px", cell: (row) => <Sparkline values={row.done.slice(0, -1)} label={`${row.name}: done a minute, last hour`} /> },
  { id: "state", label: "State", width: "124px", phone: 2, cut: true, title: (row) => row.note || undefined, cell: (row) => <QueueState queue={row} /> },
];

/** The number; on a phone, where columns have no heads, in words and with the others. */
export function ReadyCell({ queue }: { queue: QueueRow }) {
  const held = heldOf(queue);
  return (
    <>
      <Count value={openOf(queue)} to="tasks" query={tasksOf(queue, "ready")} />
      <span class="phone-words">
        {" "}
        ready{held > 0 && `, ${formatCount(held)} held`} · {formatFigure(Math.round(queue.in_rate))} in, {formatFigure(Math.round(queue.out_rate))} out a minute
      </span>
    </>
  );
}

/** Of many queues those in which most waits, by name all the same: rows must not jump. */
function chosen(queues: readonly QueueRow[]): readonly QueueRow[] {
  if (queues.length <= MOST) return queues;
  const waiting = (queue: QueueRow) => queue.ready + heldOf(queue);
  return queues
    .toSorted((one, other) => waiting(other) - waiting(one))
    .slice(0, MOST)
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

export function QueuesCard({ queues }: { queues: readonly QueueRow[] }) {
  return (
    <Card title="Queues" class="overview-queues" more={<Link to="queues">All {formatCount(queues.length)}</Link>}>
      {queues.length === 0 ? (
        <EmptyState>Queues appear with their first task or worker.</EmptyState>
      ) : (
        <Table label="Queues" rows={chosen(queues)} columns={columns} rowKey={(row) => row.name} rowTo={(row) => pathOf("queues", row.name)} />
      )}
    </Card>
  );
}
