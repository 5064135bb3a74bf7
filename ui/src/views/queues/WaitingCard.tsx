import { useResource, withQuery } from "../../api/resource";
import type { QueueRow, WaitingPage } from "../../api/types/queues";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { tokenText } from "../../filter/tokens";
import { formatCount } from "../../format/numbers";
import { Link } from "../../router/Link";
import { Text } from "../../text/Text";
import { unlessPaused } from "../overview/calm";
import { Shares, tally } from "./Shares";

const LOOK = 200;
const MOST = 6;

/** Who fills the queue: by band from counters, by type and key from the tasks at its head. */
export function WaitingCard({ queue }: { queue: QueueRow }) {
  const filter = `status:ready ${tokenText("queue", [queue.name])}`;
  const page = useResource<WaitingPage>(() => withQuery("tasks", { q: filter, limit: LOOK }), { every: unlessPaused(30_000) });
  if (queue.ready === 0) {
    return (
      <Card title="What waits">
        <EmptyState>Nothing waits. Tasks that are ready show here, by priority, type and key.</EmptyState>
      </Card>
    );
  }
  const rows = page.data.value?.items ?? [];
  const isSample = page.data.value?.cursor != null;
  const keys = tally(rows, (row) => row.key ?? "");
  const hasKeys = keys.some(([key]) => key !== "");
  return (
    <Card title="What waits" of={page} more={<Link to="tasks" query={{ q: filter }}>All {formatCount(queue.ready)}</Link>}>
      <div class="shares">
        <Shares title="By priority" of={queue.ready} shares={bandsOf(queue)} />
        <Shares
          title={isSample ? `By type, of the first ${formatCount(rows.length)}` : "By type"}
          of={rows.length}
          shares={tally(rows, (row) => row.type)
            .slice(0, MOST)
            .map(([type, count]) => ({ key: type, count, label: <Link to="tasks" query={{ q: `${filter} ${tokenText("type", [type])}` }}><Text>{type}</Text></Link> }))}
        />
        {hasKeys && (
          <Shares
            title={isSample ? `By key, of the first ${formatCount(rows.length)}` : "By key"}
            of={rows.length}
            shares={keys.slice(0, MOST).map(([key, count]) => ({ key, count, label: <Key filter={filter} value={key} /> }))}
          />
        )}
      </div>
    </Card>
  );
}

function bandsOf(queue: QueueRow) {
  return [
    { key: "high", label: "high", count: queue.high },
    { key: "normal", label: "normal", count: queue.normal },
    { key: "low", label: "low", count: queue.low },
  ];
}

function Key({ filter, value }: { filter: string; value: string }) {
  if (value === "") return <span class="dim">no key</span>;
  return (
    <Link to="tasks" query={{ q: `${filter} ${tokenText("key", [value])}` }}>
      <Text>{value}</Text>
    </Link>
  );
}
