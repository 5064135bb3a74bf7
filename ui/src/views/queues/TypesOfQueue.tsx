import type { TypeRow } from "../../api/types/queues";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Held } from "../../components/marks";
import { Count, Duration } from "../../components/numbers";
import { type Column, Table } from "../../components/Table";
import { tokenText } from "../../filter/tokens";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { Failed } from "./QueueTable";
import { queuesOf } from "./signature";

function columnsFor(queue: string): readonly Column<TypeRow>[] {
  const inQueue = tokenText("queue", [queue]);
  // The numbers are of the type as a whole: where it goes to several queues, so are the tasks behind them.
  const query = (row: TypeRow, more = "") => ({ q: [tokenText("type", [row.name]), queuesOf(row).length > 1 ? "" : inQueue, more].filter(Boolean).join(" ") });
  return [
    { id: "name", label: "Type", phone: 1, cut: true, title: (row) => row.name, cell: (row) => <Link to="queues" query={{ by: "type", open: row.name }}><Text>{row.name}</Text></Link> },
    { id: "in", label: "In, 1 h", num: true, width: "80px", cell: (row) => <Count value={row.submitted} to="tasks" query={query(row)} /> },
    { id: "done", label: "Done, 1 h", num: true, width: "84px", phone: 2, cell: (row) => <Count value={row.ended} to="tasks" query={query(row, "status:success")} /> },
    { id: "failed", label: "Failed", num: true, width: "72px", phone: 3, cell: (row) => <><Failed share={row.failure_rate} /><span class="phone-words"> failed, run p95</span></> },
    { id: "wait", label: "Wait p95", num: true, width: "88px", cell: (row) => <Duration seconds={row.wait?.p95} /> },
    { id: "run", label: "Run p95", num: true, width: "88px", phone: 4, cell: (row) => <Duration seconds={row.run?.p95} /> },
    { id: "state", label: "State", width: "96px", cell: (row) => (row.paused ? <Held icon="pause">paused</Held> : <span class="dim">{row.workers === 0 ? "no worker" : "on"}</span>) },
  ];
}

/** The types whose tasks go to this queue. */
export function TypesOfQueue({ queue, types }: { queue: string; types: readonly TypeRow[] }) {
  return (
    <Card title="Types that go here" more={<Link to="queues" query={{ by: "type" }}>All types</Link>}>
      {types.length === 0 ? (
        <EmptyState line={`@app.task(queue=${JSON.stringify(queue)})`}>No type that is known goes to this queue. Send one here:</EmptyState>
      ) : (
        <Table label="Types" rows={types} columns={columnsFor(queue)} rowKey={(row) => row.name} rowTo={(row) => `queues?by=type&open=${encodeURIComponent(row.name)}`} withoutKeys />
      )}
    </Card>
  );
}

/** The workers that take from a queue. */
export function WorkersOfQueue({ workers }: { workers: readonly { id: string; running: number; capacity: number; status: string }[] }) {
  return (
    <Card title="Workers that take from it" more={<Link to="workers">All workers</Link>}>
      {workers.length === 0 ? (
        <EmptyState line="tickwork up MODULE:APP">No worker takes from this queue. Start one:</EmptyState>
      ) : (
        <ul class="list holding">
          {workers.map((worker) => (
            <li key={worker.id}>
              <Link class="cut" to={pathOf("workers", worker.id)}>
                <Text>{worker.id}</Text>
              </Link>
              <span class="dim">{worker.status}</span>
              <span class="num">
                {worker.running} of {worker.capacity} busy
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
