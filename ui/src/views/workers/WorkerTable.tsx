import type { WorkerInfo } from "../../api/types/workers";
import { Button } from "../../components/Button";
import { Note } from "../../components/marks";
import { Slots } from "../../components/Slots";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { formatDuration } from "../../format/durations";
import { formatBytes, formatCount, formatPercent } from "../../format/numbers";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { isDraining } from "./acts";
import { OpenRow } from "./OpenRow";
import type { UsualRuns } from "./running";

interface WorkerTableProps {
  workers: readonly WorkerInfo[];
  leader: string | null;
  /** How many tasks of each worker run longer than usual. */
  long: ReadonlyMap<string, number>;
  /** The version that most run; others are marked. */
  version: string;
  usual: UsualRuns;
  open: string;
  onOpen: (worker: WorkerInfo) => void;
  onDrain: (worker: WorkerInfo) => void;
  onResume: (worker: WorkerInfo) => void;
}

export function Cpu({ worker }: { worker: WorkerInfo }) {
  return worker.memory === 0 ? <span class="dim">–</span> : <>{formatPercent(Math.round(worker.cpu * 100) / 100)}</>;
}

export function Memory({ worker }: { worker: WorkerInfo }) {
  return worker.memory === 0 ? <span class="dim">–</span> : <>{formatBytes(worker.memory)}</>;
}

export function LoopLag({ worker }: { worker: WorkerInfo }) {
  if (worker.memory === 0) return <span class="dim">–</span>;
  return <>{worker.loop_lag < 1 ? `${Math.round(worker.loop_lag * 1000)} ms` : formatDuration(worker.loop_lag)}</>;
}

function NameCell({ worker, leader }: { worker: WorkerInfo; leader: string | null }) {
  return (
    <div class="two">
      <span class="worker-name">
        <Link class="strong cut" to={pathOf("workers", worker.id)}>
          <Text>{worker.id}</Text>
        </Link>
        {leader !== null && worker.node === leader && <Note>leader</Note>}
        {isDraining(worker) && <Note tone="heal">draining</Note>}
        {worker.leaked > 0 && <Note tone="bad">{formatCount(worker.leaked)} leaked</Note>}
      </span>
      <small>
        <Text>{worker.address || `${worker.host}, pid ${worker.pid}`}</Text>
      </small>
    </div>
  );
}

function columnsFor(props: WorkerTableProps): readonly Column<WorkerInfo>[] {
  const { leader, long, version, onDrain, onResume } = props;
  return [
    { id: "name", label: "Worker", phone: 1, cut: true, title: (row) => row.id, cell: (row) => <NameCell worker={row} leader={leader} /> },
    { id: "queues", label: "Queues", width: "132px", cut: true, class: "mid", title: (row) => row.queues.join(", "), cell: (row) => <Text>{row.queues.join(", ")}</Text> },
    { id: "slots", label: "Slots", width: "188px", phone: 3, cell: (row) => <Slots total={row.capacity} busy={row.running} long={long.get(row.id) ?? 0} /> },
    { id: "busy", label: "Busy", num: true, width: "78px", phone: 2, cell: (row) => `${formatCount(row.running)} of ${formatCount(row.capacity)}` },
    { id: "cpu", label: "CPU", num: true, width: "52px", cell: (row) => <Cpu worker={row} /> },
    { id: "memory", label: "Memory", num: true, width: "70px", cell: (row) => <Memory worker={row} /> },
    { id: "lag", label: "Loop lag", num: true, width: "70px", cell: (row) => <LoopLag worker={row} /> },
    { id: "heard", label: "Heard", num: true, width: "56px", cell: (row) => <TimeAgo at={row.beat_at} form="age" /> },
    { id: "up", label: "Up", num: true, width: "84px", phone: 4, class: "dim", cell: (row) => <TimeAgo at={row.started_at} form="age" /> },
    {
      id: "version",
      label: "Version",
      width: "92px",
      cut: true,
      title: (row) => row.version,
      cell: (row) => (
        <>
          <span class="mono">
            <Text>{row.version || "–"}</Text>
          </span>{" "}
          {version && row.version !== version && <Note>other</Note>}
        </>
      ),
    },
    {
      id: "act",
      label: "",
      width: "92px",
      num: true,
      cell: (row) =>
        isDraining(row) ? (
          <Button small kind="quiet" needs="operator" label={`Resume worker ${row.id}`} onClick={() => onResume(row)}>
            Resume
          </Button>
        ) : (
          <Button small kind="quiet" needs="operator" label={`Drain… worker ${row.id}`} onClick={() => onDrain(row)}>
            Drain…
          </Button>
        ),
    },
  ];
}

/** The workers by name: rows must not jump with the load. */
export function WorkerTable(props: WorkerTableProps) {
  return (
    <Table
      label="Workers"
      rows={props.workers}
      columns={columnsFor(props)}
      tall
      rowKey={(row) => row.id}
      onOpen={props.onOpen}
      detail={(row) => (row.id === props.open ? <OpenRow worker={row} usual={props.usual} /> : null)}
    />
  );
}
