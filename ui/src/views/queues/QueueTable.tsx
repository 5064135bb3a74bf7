import type { QueueRow } from "../../api/types/queues";
import { Button } from "../../components/Button";
import { Count, Duration } from "../../components/numbers";
import { Sparkline } from "../../components/Sparkline";
import { type Column, Table } from "../../components/Table";
import { formatFigure, formatPercent } from "../../format/numbers";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { HeldCount, ReadyCell, RunningCount } from "../overview/QueuesCard";
import { Drains, QueueState } from "./state";

interface QueueTableProps {
  rows: readonly QueueRow[];
  onPause: (queue: QueueRow) => void;
  onResume: (queue: QueueRow) => void;
}

function columnsFor({ onPause, onResume }: QueueTableProps): readonly Column<QueueRow>[] {
  return [
    {
      id: "name",
      label: "Queue",
      phone: 1,
      cut: true,
      title: (row) => row.name,
      cell: (row) => (
        <Link class="strong" to={pathOf("queues", row.name)}>
          <Text>{row.name}</Text>
        </Link>
      ),
    },
    { id: "ready", label: "Ready", num: true, width: "64px", phone: 3, cell: (row) => <ReadyCell queue={row} /> },
    { id: "held", label: "Held", num: true, width: "60px", cell: (row) => <HeldCount queue={row} /> },
    { id: "running", label: "Running", num: true, width: "72px", cell: (row) => <RunningCount queue={row} /> },
    { id: "oldest", label: "Oldest", num: true, width: "92px", phone: 4, cell: (row) => <Duration seconds={row.latency} /> },
    { id: "in", label: "In/min", num: true, width: "64px", cell: (row) => formatFigure(Math.round(row.in_rate)) },
    { id: "out", label: "Out/min", num: true, width: "70px", cell: (row) => formatFigure(Math.round(row.out_rate)) },
    { id: "drains", label: "Drains in", num: true, width: "84px", cell: (row) => <Drains queue={row} /> },
    { id: "failed", label: "Failed, 1 h", num: true, width: "86px", cell: (row) => <Failed share={row.failure_rate} /> },
    { id: "slots", label: "Slots", num: true, width: "54px", cell: (row) => <Count value={row.slots} to="workers" /> },
    { id: "done", label: "Done, 1 h", width: "96px", cell: (row) => <Sparkline values={row.done.slice(0, -1)} label={`${row.name}: done a minute, last hour`} /> },
    { id: "state", label: "State", width: "204px", phone: 2, cut: true, title: (row) => row.note || undefined, cell: (row) => <StateCell queue={row} /> },
    {
      id: "act",
      label: "",
      width: "84px",
      num: true,
      cell: (row) =>
        row.paused ? (
          <Button small kind="quiet" needs="operator" label={`Resume queue ${row.name}`} onClick={() => onResume(row)}>
            Resume
          </Button>
        ) : (
          <Button small kind="quiet" needs="operator" label={`Pause… queue ${row.name}`} onClick={() => onPause(row)}>
            Pause…
          </Button>
        ),
    },
  ];
}

/** A share of failures: nothing is quiet. */
export function Failed({ share }: { share: number | null }) {
  if (share === null) return <span class="dim">–</span>;
  return share === 0 ? <span class="dim">0 %</span> : <>{formatPercent(share)}</>;
}

function StateCell({ queue }: { queue: QueueRow }) {
  if (!queue.paused || !queue.note) return <QueueState queue={queue} />;
  return (
    <>
      <QueueState queue={queue} />{" "}
      <span class="small dim">
        “<Text>{queue.note}</Text>”
      </span>
    </>
  );
}

export function QueueTable(props: QueueTableProps) {
  return <Table label="Queues" rows={props.rows} columns={columnsFor(props)} rowKey={(row) => row.name} rowTo={(row) => pathOf("queues", row.name)} />;
}
