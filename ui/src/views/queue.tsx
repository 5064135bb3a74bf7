import { useMemo, useState } from "preact/hooks";
import { useResource, withQuery } from "../api/resource";
import type { QueueRow, QueueStats, TypeRow } from "../api/types/queues";
import type { SeriesView } from "../api/types/reports";
import type { WorkerList } from "../api/types/workers";
import { Button, reasonOff } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Figure, Figures } from "../components/Figure";
import { Pill } from "../components/marks";
import { TimeAgo } from "../components/TimeAgo";
import { WhyBox } from "../components/WhyBox";
import { tokenText } from "../filter/tokens";
import { durationMeasure } from "../format/durations";
import { formatCount, formatFigure, plural } from "../format/numbers";
import { useRefreshOn, useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import { pathOf } from "../router/location";
import type { ViewProps } from "../router/routes";
import { storeNow } from "../state/clock";
import { useActions, useTitle } from "../state/page";
import { range, rangeSeconds } from "../state/range";
import { Text } from "../text/Text";
import { unlessPaused, useCalm } from "./overview/calm";
import { Throughput, WaitAndRun } from "./overview/Charts";
import { heldTasks } from "./overview/QueuesCard";
import { drawSeries } from "./overview/series";
import { HoldingCard } from "./queues/HoldingCard";
import { PauseDialog, resume } from "./queues/PauseDialog";
import { queuesOf } from "./queues/signature";
import { heldBy, heldOf, openOf, sentenceOf, toneOf } from "./queues/state";
import { TypesOfQueue, WorkersOfQueue } from "./queues/TypesOfQueue";
import { WaitingCard } from "./queues/WaitingCard";
import "../styles/views/queues.css";

export default function QueueView({ params }: ViewProps<"name">) {
  const { name } = params;
  useTitle(name, [{ label: "Queues", to: "queues" }]);
  const resource = useResource<QueueRow>(() => pathOf("queues", name), { every: unlessPaused(5000) });
  const refresh = () => void resource.refresh();
  useTopics("queue", "type");
  useRefreshOn((event) => event.kind.startsWith("queue.") || event.kind.startsWith("type."), refresh);
  const queue = useCalm(resource);
  if (resource.error.value?.status === 404) {
    return (
      <Card>
        <EmptyState action={<Link class="btn" to="queues">All queues</Link>}>There is no queue of this name now. Queues appear with their first task or worker.</EmptyState>
      </Card>
    );
  }
  if (!queue) return <Card of={resource} title="Queue" />;
  return (
    <>
      <Head queue={queue} refresh={refresh} />
      <div class="stack queue-parts">
        <Numbers queue={queue} />
        <Past name={name} />
        <Parts queue={queue} />
      </div>
    </>
  );
}

function Head({ queue, refresh }: { queue: QueueRow; refresh: () => void }) {
  const [isAsking, setAsking] = useState(false);
  const what = { kind: "queue", name: queue.name } as const;
  const tone = toneOf(queue);
  const act = queue.paused ? () => resume(what, refresh) : () => setAsking(true);
  const label = queue.paused ? "Resume queue" : "Pause queue…";
  useActions([{ label: `${label} ${queue.name}`, run: act, off: reasonOff("operator", null) }]);
  return (
    <>
      <div class="head">
        <h2>
          <Text>{queue.name}</Text>
        </h2>
        <Pill tone={tone}>{queue.paused ? "paused" : tone === "good" ? "keeps up" : tone === "bad" ? "no worker" : openOf(queue) > 0 ? "falls behind" : "held"}</Pill>
        {queue.paused_at && <span class="dim small">paused <TimeAgo at={queue.paused_at} /></span>}
        <span class="sp" />
        <div class="row acts-phone">
          <Link class="btn" to="tasks" query={{ q: tokenText("queue", [queue.name]) }}>
            Its tasks
          </Link>
          <Button kind={queue.paused ? "prime" : "plain"} needs="operator" icon={queue.paused ? "play" : "pause"} onClick={act}>
            {label}
          </Button>
        </div>
      </div>
      {tone !== "good" && (
        <WhyBox title={queue.paused ? "Why nothing starts" : "How it is"} tone={tone} icon={queue.paused ? "pause" : "info"}>
          {sentenceOf(queue)}
        </WhyBox>
      )}
      {isAsking && <PauseDialog what={what} onDone={refresh} onClose={() => setAsking(false)} />}
    </>
  );
}

function Numbers({ queue }: { queue: QueueRow }) {
  // Those of other statuses are counted one by one, so they are asked for less often.
  const stats = useResource<QueueStats>(() => withQuery("stats/queues", { queue: queue.name }), { every: unlessPaused(15_000) });
  const known = stats.data.value;
  const failed = stats.error.value !== null && known === null;
  const of = (value: number | undefined) => (value === undefined ? (failed ? "–" : null) : `${known?.at_least ? "at least " : ""}${formatCount(value)}`);
  const inQueue = tokenText("queue", [queue.name]);
  const oldest = durationMeasure(queue.latency ?? 0);
  const bands = [queue.high > 0 && `${formatCount(queue.high)} high`, queue.low > 0 && `${formatCount(queue.low)} low`].filter(Boolean).join(", ");
  return (
    <Figures label="Figures of the queue">
      <Figure title="Ready" value={formatCount(openOf(queue))} sub={queue.paused ? "all are held" : bands || (openOf(queue) > 0 ? "all of normal priority" : "nothing waits")} to="tasks" query={{ q: `status:ready ${inQueue}` }} />
      <Figure title="Held" value={formatCount(heldOf(queue))} sub={heldBy(queue)} to="tasks" query={heldTasks(queue)} />
      <Figure title="Oldest ready" value={oldest.figure} unit={oldest.unit} sub={`${formatFigure(Math.round(queue.in_rate))} in, ${formatFigure(Math.round(queue.out_rate))} out a minute`} />
      <Figure title="Running" value={of(known?.running_count)} sub={`${plural(queue.workers, "worker")}, ${plural(queue.slots, "slot")}`} to="tasks" query={{ q: `status:running ${inQueue}` }} />
      <Figure title="For later" value={of(known?.delayed_count)} sub="pending or retrying" to="tasks" query={{ q: `status:pending,retrying ${inQueue}` }} />
      <Figure title="Dead letters" value={of(known?.dlq_count)} sub={queue.failure_rate === null ? "nothing ended in 1 h" : `${formatFigure(queue.failure_rate * 100)} % failed in 1 h`} to="tasks" query={{ q: `status:dead ${inQueue}` }} />
    </Figures>
  );
}

function Past({ name }: { name: string }) {
  const series = useResource<SeriesView>(() => withQuery("stats/series", { minutes: rangeSeconds.value / 60, by: "queue" }), { every: unlessPaused(10_000) });
  const view = useCalm(series);
  const drawn = useMemo(() => (view ? drawSeries(view, name, storeNow()) : null), [view, name]);
  const filter = tokenText("queue", [name]);
  if (!drawn) return <Card of={series} title="Tasks a minute" />;
  return (
    <div class="grid g2">
      <Throughput drawn={drawn} scaleKey={range.value} filter={filter} />
      <WaitAndRun drawn={drawn} scaleKey={range.value} filter={filter} />
    </div>
  );
}

function Parts({ queue }: { queue: QueueRow }) {
  const types = useResource<TypeRow[]>(() => "types", { every: unlessPaused(15_000) });
  const workers = useResource<WorkerList>(() => "workers", { every: unlessPaused(15_000) });
  const here = (types.data.value ?? []).filter((type) => queuesOf(type).includes(queue.name));
  const serving = (workers.data.value?.items ?? []).filter((worker) => worker.lost_at === null && worker.queues.includes(queue.name));
  return (
    <div class="grid g2">
      <div class="stack">
        <TypesOfQueue queue={queue.name} types={here} />
        <HoldingCard name={queue.name} types={here} />
      </div>
      <div class="stack">
        <WaitingCard queue={queue} />
        <WorkersOfQueue workers={serving} />
      </div>
    </div>
  );
}
