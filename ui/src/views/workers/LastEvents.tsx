import { useResource, withQuery } from "../../api/resource";
import type { EventPage, EventRow } from "../../api/types/events";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Duration } from "../../components/numbers";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { tokenText } from "../../filter/tokens";
import { Link } from "../../router/Link";
import { Text } from "../../text/Text";
import { TaskId } from "./running";

const SHOWN = 12;

const columns: readonly Column<EventRow>[] = [
  { id: "at", label: "Time", width: "112px", phone: 2, cell: (row) => <TimeAgo at={row.at} form="millis" /> },
  { id: "kind", label: "What", width: "150px", phone: 1, cell: (row) => <Text>{row.kind}</Text> },
  { id: "type", label: "Type", width: "140px", phone: 3, cut: true, class: "mid", title: (row) => row.type, cell: (row) => <Text>{row.type}</Text> },
  { id: "id", label: "Task", width: "104px", phone: 4, cell: (row) => (row.kind.startsWith("task.") ? <TaskId id={row.id} /> : null) },
  { id: "took", label: "Took", num: true, width: "90px", cell: (row) => (row.duration > 0 ? <Duration seconds={row.duration} /> : <span class="dim">–</span>) },
  { id: "detail", label: "Detail", cut: true, class: "mid", title: (row) => row.detail || undefined, cell: (row) => <Text>{row.detail}</Text> },
];

/** What it did last, from the log. A worker does much, so newer facts come only when they are asked for. */
export function LastEvents({ worker }: { worker: string }) {
  const events = useResource<EventPage>(() => withQuery("events", { worker, limit: SHOWN }));
  const rows = events.data.value?.items ?? [];
  return (
    <Card
      title="What it did last"
      of={events}
      more={
        <>
          <button type="button" class="link" onClick={() => void events.refresh()}>
            Show newer
          </button>
          <Link to="events" query={{ q: tokenText("worker", [worker]) }}>
            All its events
          </Link>
        </>
      }
    >
      {rows.length === 0 ? (
        <EmptyState>The log has nothing of it. Facts leave the log after a while.</EmptyState>
      ) : (
        <Table label="Events" rows={rows} columns={columns} rowKey={(row) => String(row.seq)} withoutKeys />
      )}
    </Card>
  );
}
