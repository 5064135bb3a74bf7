import type { WorkerInfo } from "../../api/types/workers";
import { Card } from "../../components/Card";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { tokenText } from "../../filter/tokens";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { howLost } from "./lost";

const columns: readonly Column<WorkerInfo>[] = [
  {
    id: "name",
    label: "Worker",
    phone: 1,
    width: "240px",
    cut: true,
    title: (row) => row.id,
    cell: (row) => (
      <div class="two">
        <Link class="strong" to={pathOf("workers", row.id)}>
          <Text>{row.id}</Text>
        </Link>
        <small>
          <Text>{row.address || `${row.host}, pid ${row.pid}`}</Text>
        </small>
      </div>
    ),
  },
  { id: "lost", label: "Lost", phone: 2, width: "120px", cell: (row) => <div class="two"><TimeAgo at={row.lost_at} form="clock" /><small><TimeAgo at={row.lost_at} /></small></div> },
  { id: "how", label: "How", phone: 3, cut: true, class: "mid", title: howLost, cell: howLost },
  { id: "heard", label: "Last heard", phone: 4, width: "92px", cell: (row) => <TimeAgo at={row.beat_at} form="clock" /> },
  {
    id: "tasks",
    label: "Its tasks",
    width: "136px",
    cell: (row) => (
      <Link class="go" to="tasks" query={{ q: tokenText("worker", [row.id]) }}>
        Tasks it ran last
      </Link>
    ),
  },
];

export function LostTable({ workers }: { workers: readonly WorkerInfo[] }) {
  return (
    <Card title="Lost in the last hour">
      <Table label="Lost workers" rows={workers} columns={columns} tall rowKey={(row) => row.id} rowTo={(row) => pathOf("workers", row.id)} withoutKeys />
    </Card>
  );
}
