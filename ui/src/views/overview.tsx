import { useEffect, useMemo } from "preact/hooks";
import { useResource, withQuery } from "../api/resource";
import type { Overview } from "../api/types/overview";
import type { WorkerList } from "../api/types/workers";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Banner } from "../components/Banner";
import { plural } from "../format/numbers";
import { useRefreshOn, useTopics } from "../live/hooks";
import { range, rangeSeconds } from "../state/range";
import { ReadError } from "../components/Loading";
import { openOf } from "./queues/state";
import { unlessPaused, useCalm } from "./overview/calm";
import { Throughput, WaitAndRun } from "./overview/Charts";
import { DeadCard } from "./overview/DeadCard";
import { FigureRow } from "./overview/FigureRow";
import { QueuesCard } from "./overview/QueuesCard";
import { addSample } from "./overview/samples";
import { drawSeries, sumSeries, versionMarks } from "./overview/series";
import { VerdictCard } from "./overview/VerdictCard";
import "../styles/views/overview.css";

/** Facts that change what needs somebody; the numbers come with the next read. */
const TELLING = ["queue", "type", "breaker", "switch", "alert", "worker"];

export default function OverviewView() {
  const resource = useResource<Overview>(() => withQuery("overview", { minutes: rangeSeconds.value / 60 }), { every: unlessPaused(5000) });
  const workers = useResource<WorkerList>(() => "workers", { every: unlessPaused(60_000) });
  useTopics(...TELLING);
  useRefreshOn((event) => TELLING.includes(event.kind.split(".")[0] ?? ""), () => void resource.refresh());
  const overview = useCalm(resource);
  const marks = useMemo(() => versionMarks(workers.data.value?.items ?? []), [workers.data.value]);
  useEffect(() => {
    if (overview) addSample(sampleOf(overview));
  }, [overview]);
  if (!overview) return <Card of={resource} title="How it is" />;
  return (
    <>
      {resource.error.value && (
        <Banner tone="heal">
          <ReadError of={resource} />
        </Banner>
      )}
      <div class="stack">
        {(!isFresh(overview) || overview.attention.length > 0) && <VerdictCard key={overview.status.namespace} overview={overview} />}
        <FirstSteps overview={overview} />
        {!isFresh(overview) && <Numbers overview={overview} marks={marks} />}
      </div>
    </>
  );
}

function sampleOf({ status, queues }: Overview) {
  const oldest = Math.max(0, ...queues.filter((queue) => openOf(queue) > 0).map((queue) => queue.latency ?? 0));
  return { at: Date.parse(status.time), oldest, busy: status.busy };
}

/** Nothing was ever submitted, as far as anything is still kept. */
function isFresh({ status, series }: Overview): boolean {
  const kept = Object.values(status.tasks).reduce((sum, count) => sum + count, 0);
  return kept === 0 && sumSeries(series, "").submitted === 0;
}

/** What to type when there is nothing yet. */
function FirstSteps({ overview }: { overview: Overview }) {
  const ready = overview.status.tasks.ready ?? 0;
  const hasWorker = overview.status.workers > 0;
  const fresh = isFresh(overview);
  if (hasWorker && !fresh) return null;
  return (
    <div class={!hasWorker && fresh ? "grid g11" : "grid"}>
      {!hasWorker && (
        <Card>
          <EmptyState line="tickwork up MODULE:APP">No worker is up. {ready > 0 && `${plural(ready, "task is", "tasks are")} ready. `}Start one:</EmptyState>
        </Card>
      )}
      {fresh && (
        <Card>
          <EmptyState line={"tickwork submit greet '\"Ada\"'"}>No task yet. Submit one:</EmptyState>
        </Card>
      )}
    </div>
  );
}

function Numbers({ overview, marks }: { overview: Overview; marks: ReturnType<typeof versionMarks> }) {
  const { series, status } = overview;
  const drawn = useMemo(() => drawSeries(series, "", Date.parse(status.time)), [series]);
  const sums = useMemo(() => sumSeries(series, ""), [series]);
  return (
    <>
      <FigureRow overview={overview} drawn={drawn} sums={sums} range={range.value} />
      <div class="grid g2">
        <Throughput drawn={drawn} scaleKey={range.value} marks={marks} />
        <WaitAndRun drawn={drawn} scaleKey={range.value} marks={marks} />
      </div>
      <div class="grid g2">
        <QueuesCard queues={overview.queues} />
        <DeadCard failures={overview.failures} dead={status.tasks.dead ?? 0} />
      </div>
    </>
  );
}
