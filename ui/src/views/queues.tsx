import { useState } from "preact/hooks";
import { useResource } from "../api/resource";
import type { QueueRow } from "../api/types/queues";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Tabs } from "../components/Tabs";
import { formatCount, formatFigure } from "../format/numbers";
import { useRefreshOn, useTopics } from "../live/hooks";
import { useQueryParam } from "../router/query";
import { Text } from "../text/Text";
import { unlessPaused, useCalm } from "./overview/calm";
import { ByType } from "./queues/ByType";
import { PauseDialog, resume } from "./queues/PauseDialog";
import { QueueTable } from "./queues/QueueTable";
import { heldOf, isBehind, openOf } from "./queues/state";
import "../styles/views/queues.css";

export default function QueuesView() {
  const by = useQueryParam("by", "queue");
  const isByType = by.value === "type";
  return (
    <>
      <Tabs
        label="Queues and types"
        tabs={[
          { label: "By queue", to: "queues", current: !isByType },
          { label: "By type", to: "queues", query: { by: "type" }, current: isByType },
        ]}
      />
      {isByType ? <ByType /> : <ByQueue />}
    </>
  );
}

function ByQueue() {
  const queues = useResource<QueueRow[]>(() => "queues", { every: unlessPaused(5000) });
  const [asking, setAsking] = useState<string | null>(null);
  const refresh = () => void queues.refresh();
  useTopics("queue", "type");
  useRefreshOn((event) => event.kind.startsWith("queue.") || event.kind.startsWith("type."), refresh);
  const rows = useCalm(queues);
  return (
    <>
      {rows && rows.length > 0 && <Answer queues={rows} />}
      <Card of={queues} class="queue-table">
        {rows?.length === 0 ? (
          <EmptyState line={"tickwork submit greet '\"Ada\"'"}>Queues appear with their first task or worker.</EmptyState>
        ) : (
          <QueueTable rows={rows ?? []} onPause={(row) => setAsking(row.name)} onResume={(row) => resume({ kind: "queue", name: row.name }, refresh)} />
        )}
      </Card>
      {asking !== null && <PauseDialog what={{ kind: "queue", name: asking }} onDone={refresh} onClose={() => setAsking(null)} />}
    </>
  );
}

/** Which one is behind, in a line. */
function Answer({ queues }: { queues: readonly QueueRow[] }) {
  const total = (of: (queue: QueueRow) => number) => queues.reduce((sum, queue) => sum + of(queue), 0);
  const behind = queues.filter(isBehind);
  const orphans = queues.filter((queue) => !queue.paused && queue.workers === 0 && queue.ready > 0);
  const held = total(heldOf);
  return (
    <div class="sumline">
      {orphans.length > 0 && (
        <span class="c-bad">
          <b>
            <Text>{orphans.map((queue) => queue.name).join(", ")}</Text>
          </b>{" "}
          {orphans.length === 1 ? "has" : "have"} tasks and no worker
        </span>
      )}
      {behind.length > 0 ? (
        <span>
          <b>
            <Text>{behind.map((queue) => queue.name).join(", ")}</Text>
          </b>{" "}
          {behind.length === 1 ? "falls" : "fall"} behind
        </span>
      ) : (
        orphans.length === 0 && <span>{held > 0 ? "What is not held keeps up." : "Every queue keeps up."}</span>
      )}
      <span>
        <b>{formatCount(total(openOf))}</b> ready
      </span>
      {held > 0 && (
        <span class="c-heal">
          <b>{formatCount(held)}</b> held
        </span>
      )}
      <span>
        <b>{formatFigure(Math.round(total((queue) => queue.in_rate)))}</b> in, <b>{formatFigure(Math.round(total((queue) => queue.out_rate)))}</b> out a minute
      </span>
    </div>
  );
}
