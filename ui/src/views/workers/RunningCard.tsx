import type { RunningTask } from "../../api/types/workers";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Duration } from "../../components/numbers";
import { type Column, Table } from "../../components/Table";
import { pathOf } from "../../router/location";
import { Link } from "../../router/Link";
import { formatCount } from "../../format/numbers";
import { Text } from "../../text/Text";
import { useStillUnder } from "../overview/calm";
import { Progress, Running, TaskId, type UsualRuns } from "./running";

function columnsFor(usual: UsualRuns, now: number): readonly Column<RunningTask>[] {
  return [
    { id: "type", label: "Type", phone: 1, cut: true, title: (row) => row.type, cell: (row) => <Link to={pathOf("tasks", row.id)}><Text>{row.type}</Text></Link> },
    { id: "id", label: "Id", width: "104px", phone: 3, cell: (row) => <TaskId id={row.id} /> },
    { id: "key", label: "Key", width: "96px", cut: true, class: "mid", title: (row) => row.key ?? undefined, cell: (row) => (row.key === null ? <span class="dim">–</span> : <Text>{row.key}</Text>) },
    { id: "queue", label: "Queue", width: "88px", cut: true, class: "mid", title: (row) => row.queue, cell: (row) => <Text>{row.queue}</Text> },
    { id: "attempt", label: "Attempt", num: true, width: "68px", cell: (row) => (row.max_retry === null ? formatCount(row.attempt) : `${formatCount(row.attempt)} of ${formatCount(row.max_retry + 1)}`) },
    { id: "elapsed", label: "Elapsed", num: true, width: "84px", phone: 2, cell: (row) => <Running task={row} usual={usual} now={now} /> },
    { id: "usual", label: "Usual p99", num: true, width: "80px", class: "dim", cell: (row) => <Duration seconds={usual.get(row.type)} /> },
    { id: "progress", label: "Progress", width: "128px", phone: 4, cell: (row) => <Progress task={row} /> },
  ];
}

interface RunningCardProps {
  running: readonly RunningTask[];
  usual: UsualRuns;
  /** When it was read. */
  now: number;
  isUp: boolean;
}

/** What it runs, the longest first. */
export function RunningCard({ running, usual, now, isUp }: RunningCardProps) {
  const { shown, handlers } = useStillUnder({ running, now });
  return (
    <div {...handlers}>
      <Card title="Running now, longest first" more={formatCount(shown.running.length)}>
        {shown.running.length === 0 ? (
          <EmptyState>{isUp ? "It runs nothing now." : "It runs nothing: its tasks are taken back."}</EmptyState>
        ) : (
          <Table label="Tasks that it runs" rows={shown.running} columns={columnsFor(usual, shown.now)} rowKey={(row) => row.id} rowTo={(row) => pathOf("tasks", row.id)} />
        )}
      </Card>
    </div>
  );
}
