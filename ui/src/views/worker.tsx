import { useState } from "preact/hooks";
import { useResource } from "../api/resource";
import type { TypeRow } from "../api/types/queues";
import type { WorkerInfo, WorkerList, WorkerView as View } from "../api/types/workers";
import { Button, reasonOff } from "../components/Button";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { EmptyState } from "../components/EmptyState";
import { Figure, Figures } from "../components/Figure";
import { Note, Pill } from "../components/marks";
import { Menu } from "../components/Menu";
import { Slots } from "../components/Slots";
import { TimeAgo } from "../components/TimeAgo";
import { WhyBox } from "../components/WhyBox";
import { tokenText } from "../filter/tokens";
import { formatBytes, formatCount, formatPercent, plural } from "../format/numbers";
import type { Tone } from "../icons/StatusShape";
import { useRefreshOn, useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import { pathOf } from "../router/location";
import type { ViewProps } from "../router/routes";
import { useActions, useTitle } from "../state/page";
import { Text } from "../text/Text";
import { unlessPaused, useCalm } from "./overview/calm";
import { ChangeDialog, DrainDialog, isChanged, isDraining, isUnheard, resetWorker, resumeWorker } from "./workers/acts";
import { Facts } from "./workers/Facts";
import { Handlers } from "./workers/Handlers";
import { LastEvents } from "./workers/LastEvents";
import { RunningCard } from "./workers/RunningCard";
import { isLong, usualRuns } from "./workers/running";
import { LoopLag } from "./workers/WorkerTable";
import "../styles/views/workers.css";

const TONES: Readonly<Record<WorkerInfo["status"], Tone>> = { idle: "good", busy: "play", draining: "heal", offline: "bad" };
const WORDS: Readonly<Record<WorkerInfo["status"], string>> = { idle: "has free slots", busy: "full", draining: "draining", offline: "lost" };

export default function WorkerView({ params }: ViewProps<"id">) {
  const { id } = params;
  useTitle(id, [{ label: "Workers", to: "workers" }]);
  const resource = useResource<View>(() => pathOf("workers", id), { every: unlessPaused(3000) });
  const list = useResource<WorkerList>(() => "workers", { every: unlessPaused(30_000) });
  const types = useResource<TypeRow[]>(() => "types", { every: unlessPaused(60_000) });
  const refresh = () => void resource.refresh();
  useTopics("worker", "leader");
  useRefreshOn((event) => event.kind.startsWith("worker.") && event.id === id, refresh);
  const view = useCalm(resource);
  if (resource.error.value?.status === 404) {
    return (
      <Card>
        <EmptyState action={<Link class="btn" to="workers">All workers</Link>}>No worker of this name is known. Lost workers are forgotten after a while.</EmptyState>
      </Card>
    );
  }
  if (!view) return <Card of={resource} title="Worker" />;
  const { worker, running } = view;
  const usual = usualRuns(types.data.value ?? []);
  const long = running.filter((task) => isLong(task, usual, resource.readAt.value)).length;
  return (
    <>
      <Head worker={worker} isLeader={list.data.value?.leader === worker.node && worker.node !== ""} refresh={refresh} />
      <Numbers worker={worker} long={long} />
      <div class="aside">
        <div class="stack">
          <RunningCard running={running} usual={usual} now={resource.readAt.value} isUp={worker.lost_at === null} />
          <LastEvents worker={worker.id} />
        </div>
        <div class="stack">
          <Facts worker={worker} />
          <Handlers worker={worker} types={types.data.value ?? []} />
        </div>
      </div>
    </>
  );
}

function Head({ worker, isLeader, refresh }: { worker: WorkerInfo; isLeader: boolean; refresh: () => void }) {
  const [asking, setAsking] = useState<"drain" | "change" | null>(null);
  const gone = worker.lost_at !== null ? "The worker is lost." : null;
  const drains = isDraining(worker);
  const drain = drains ? () => resumeWorker(worker, refresh) : () => setAsking("drain");
  const close = () => setAsking(null);
  const off = reasonOff("operator", gone);
  useActions([
    { label: drains ? "Resume worker" : "Drain worker…", run: drain, off },
    { label: "Change worker…", run: () => setAsking("change"), off },
  ]);
  return (
    <>
      <div class="head">
        <h2>
          <Text>{worker.id}</Text>
        </h2>
        <CopyButton text={worker.id} label="Copy the name" />
        <Pill tone={TONES[worker.status]}>{WORDS[worker.status]}</Pill>
        {isLeader && <Note>leader</Note>}
        <span class="sp" />
        <div class="row acts-phone">
          <Button needs="operator" off={gone} onClick={drain}>
            {drains ? "Resume worker" : "Drain worker…"}
          </Button>
          <Button needs="operator" off={gone} onClick={() => setAsking("change")}>
            Change…
          </Button>
          <Menu
            label="More about this worker"
            entries={[
              { label: "Reset to its own options", needs: "operator", off: gone ?? (isChanged(worker) ? null : "Nothing was changed by hand."), run: () => resetWorker(worker, refresh) },
              { label: "Tasks it ran last", to: "tasks", query: { q: tokenText("worker", [worker.id]) }, apart: true },
              { label: "Its events", to: "events", query: { q: tokenText("worker", [worker.id]) } },
            ]}
          />
        </div>
      </div>
      <Why worker={worker} />
      {asking === "drain" && <DrainDialog worker={worker} onDone={refresh} onClose={close} />}
      {asking === "change" && <ChangeDialog worker={worker} onDone={refresh} onClose={close} />}
    </>
  );
}

/** What is not as usual with it, in a sentence. */
function Why({ worker }: { worker: WorkerInfo }) {
  if (worker.lost_at !== null) {
    return (
      <WhyBox title="What happened to it" tone="bad" icon="lost">
        It was not heard of for a whole lease. Its tasks are taken back and run elsewhere.
      </WhyBox>
    );
  }
  if (worker.leaked > 0) {
    return (
      <WhyBox title="It needs a restart" tone="bad">
        {`${plural(worker.leaked, "handler")} could not be stopped, and ${worker.leaked === 1 ? "holds a slot" : "hold slots"} until the process ends.`}
      </WhyBox>
    );
  }
  if (isDraining(worker)) {
    return (
      <WhyBox title="Why it takes nothing" tone="heal" icon="pause">
        {worker.running > 0 ? `It drains: ${plural(worker.running, "task")} to finish.` : "It has drained: it runs nothing, and can be stopped."}
      </WhyBox>
    );
  }
  if (isUnheard(worker)) {
    return (
      <WhyBox title="It is being changed" tone="play">
        {`It was asked for ${worker.order || "its own options"}, and follows with its next heartbeat.`}
      </WhyBox>
    );
  }
  return null;
}

function Numbers({ worker, long }: { worker: WorkerInfo; long: number }) {
  const isKnown = worker.memory > 0;
  return (
    <div class="grid">
      <Figures label="Figures of the worker">
        <Figure title="Slots busy" value={formatCount(worker.running)} unit={`of ${formatCount(worker.capacity)}`} sub={long > 0 ? `${formatCount(long)} longer than p99` : "none longer than p99"} to="tasks" query={{ q: `status:running ${tokenText("worker", [worker.id])}` }}>
          <span class="fig-slots">
            <Slots total={worker.capacity} busy={worker.running} long={long} />
          </span>
        </Figure>
        <Figure title="CPU" value={isKnown ? formatPercent(Math.round(worker.cpu * 100) / 100).replace(" %", "") : "–"} unit={isKnown ? "%" : ""} sub="of one core" />
        <Figure title="Memory" value={isKnown ? formatBytes(worker.memory).split(" ")[0] : "–"} unit={isKnown ? formatBytes(worker.memory).split(" ")[1] : ""} sub="of its process" />
        <Figure title="Loop lag" value={<LoopLag worker={worker} />} sub="of its event loop" />
        <Figure title="Heard" value={<TimeAgo at={worker.beat_at} form="age" />} sub={worker.lost_at === null ? "ago" : <>lost <TimeAgo at={worker.lost_at} /></>} />
        <Figure title="Up" value={<TimeAgo at={worker.started_at} form="age" />} sub={<>since <TimeAgo at={worker.started_at} form="near" /></>} />
      </Figures>
    </div>
  );
}
