import { useMemo, useState } from "preact/hooks";
import { useResource, withQuery } from "../api/resource";
import type { TypeRow } from "../api/types/queues";
import type { ServerStatus } from "../api/types/overview";
import type { RunningPage, WorkerInfo, WorkerList } from "../api/types/workers";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { formatCount, plural } from "../format/numbers";
import { useRefreshOn, useTopics } from "../live/hooks";
import { useQueryParam } from "../router/query";
import { storeNow } from "../state/clock";
import { countOf } from "../state/counts";
import { Text } from "../text/Text";
import { unlessPaused, useCalm } from "./overview/calm";
import { tally } from "./queues/Shares";
import { DrainDialog, resumeWorker } from "./workers/acts";
import { LostTable } from "./workers/LostTable";
import { isLong, type UsualRuns, usualRuns } from "./workers/running";
import { WorkerTable } from "./workers/WorkerTable";
import "../styles/views/workers.css";

export default function WorkersView() {
  const resource = useResource<WorkerList>(() => "workers", { every: unlessPaused(5000) });
  const types = useResource<TypeRow[]>(() => "types", { every: unlessPaused(60_000) });
  const open = useQueryParam("open");
  const [draining, setDraining] = useState<WorkerInfo | null>(null);
  const refresh = () => void resource.refresh();
  useTopics("worker", "leader");
  useRefreshOn((event) => event.kind.startsWith("worker.") || event.kind.startsWith("leader."), refresh);
  const list = useCalm(resource);
  const usual = useMemo(() => usualRuns(types.data.value ?? []), [types.data.value]);
  const long = useLong(usual);
  if (!list) return <Card of={resource} title="Workers" />;
  const up = list.items.filter((worker) => worker.lost_at === null);
  const lost = list.items.filter((worker) => worker.lost_at !== null);
  const [version = ""] = tally(up, (worker) => worker.version)[0] ?? [];
  return (
    <>
      <Sums list={list} up={up} />
      <Card of={resource} class="worker-table">
        {up.length === 0 ? (
          <EmptyState line="tickwork up MODULE:APP">{noWorker()}</EmptyState>
        ) : (
          <WorkerTable
            workers={up}
            leader={list.leader}
            long={long}
            version={version}
            usual={usual}
            open={open.value}
            onOpen={(worker) => open.set(open.value === worker.id ? "" : worker.id, "replace")}
            onDrain={setDraining}
            onResume={(worker) => resumeWorker(worker, refresh)}
          />
        )}
      </Card>
      {lost.length > 0 && (
        <div class="grid">
          <LostTable workers={lost} />
        </div>
      )}
      {draining && <DrainDialog worker={draining} onDone={refresh} onClose={() => setDraining(null)} />}
    </>
  );
}

function noWorker(): string {
  const ready = countOf("ready");
  return ready > 0 ? `No worker is up. ${plural(ready, "task is", "tasks are")} ready. Start one:` : "No worker is up. Start one:";
}

const LOOK = 500;

/** How many tasks of each worker run longer than their type usually does, of those that are looked at. */
function useLong(usual: UsualRuns): ReadonlyMap<string, number> {
  const running = useResource<RunningPage>(() => withQuery("tasks", { q: "status:running run>1s", limit: LOOK }), { every: unlessPaused(10_000) });
  const items = running.data.value?.items;
  return useMemo(() => {
    const now = storeNow();
    return new Map(tally((items ?? []).filter((task) => isLong(task, usual, now)), (task) => task.worker_id ?? ""));
  }, [items, usual]);
}

function Sums({ list, up }: { list: WorkerList; up: readonly WorkerInfo[] }) {
  const total = (of: (worker: WorkerInfo) => number) => up.reduce((sum, worker) => sum + of(worker), 0);
  const status = useResource<ServerStatus>(() => "status");
  const leaked = total((worker) => worker.leaked);
  return (
    <div class="sumline">
      <span>
        <b>{formatCount(up.length)}</b> {up.length === 1 ? "worker" : "workers"} up
      </span>
      <span>
        <b>{formatCount(total((worker) => worker.running))}</b> of <b>{formatCount(total((worker) => worker.capacity))}</b> slots busy
      </span>
      <span class={leaked > 0 ? "c-bad" : undefined}>
        <b>{formatCount(leaked)}</b> leaked {leaked === 1 ? "handler" : "handlers"}
      </span>
      {list.leader ? (
        <span>
          Leader{" "}
          <b>
            <Text>{list.leader}</Text>
          </b>
          , term {list.term}
        </span>
      ) : (
        <span class="c-heal">No leader</span>
      )}
      {status.data.value && (
        <span>
          Store{" "}
          <b>
            <Text>{status.data.value.store.split(":")[0]}</Text>
          </b>
        </span>
      )}
      <span class="sp" />
      <span class="row no-phone slot-key">
        <span class="key">
          <i class="f-play" /> busy
        </span>
        <span class="key">
          <i class="f-heal" /> longer than p99
        </span>
        <span class="key">
          <i class="free" /> free
        </span>
      </span>
    </div>
  );
}
