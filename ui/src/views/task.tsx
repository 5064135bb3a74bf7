import { useEffect, useState } from "preact/hooks";
import { type Resource, useResource } from "../api/resource";
import type { EventRow } from "../api/types/events";
import type { Explanation, TaskView } from "../api/types/tasks";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Loading, ReadError } from "../components/Loading";
import { LogTail } from "../components/LogTail";
import { parseTraceback } from "../components/parseTraceback";
import { StateDiagram } from "../components/StateDiagram";
import { Timeline } from "../components/Timeline";
import { Traceback } from "../components/Traceback";
import { formatDuration } from "../format/durations";
import { shortId } from "../format/ids";
import { plural } from "../format/numbers";
import { toMillis } from "../format/times";
import { useRefreshOn, useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import { useQueryParam } from "../router/query";
import type { ViewProps } from "../router/routes";
import { secondTick, storeNow } from "../state/clock";
import { useTitle } from "../state/page";
import { zone } from "../state/prefs";
import { rememberTasks } from "../state/recent";
import { hasEnded, isWaiting } from "./task/actions";
import { Facts } from "./task/Facts";
import { Graph } from "./task/Graph";
import { Header, heldWords } from "./task/Header";
import { pathOfStays, phasesOf, runsOf, type Stay, staysOf } from "./task/history";
import { logLines } from "./task/logLines";
import { Values } from "./task/Values";
import { Why } from "./task/Why";
import { reasonOf } from "./tasks/reasons";
import "../styles/views/task.css";

const WHILE_RUNNING = 1000;
const WHILE_WAITING = 5000;

export default function TaskView({ params }: ViewProps<"id">) {
  const id = params.id;
  const [pace, setPace] = useState(0);
  const of = `tasks/${encodeURIComponent(id)}`;
  const every = pace > 0 ? { every: pace } : {};
  const task = useResource<TaskView>(() => of, every);
  const events = useResource<EventRow[]>(() => `${of}/events`);
  const why = useResource<Explanation>(() => `${of}/explain`, every.every ? { every: WHILE_WAITING } : {});
  const data = task.data.value;
  useTitle(shortId(id), [{ label: "Tasks", to: "tasks" }]);
  useTopics("task");
  const refresh = () => {
    void task.refresh();
    void events.refresh();
    void why.refresh();
  };
  useRefreshOn((event) => event.id === id, refresh, 250);
  useEffect(() => {
    if (!data) return;
    setPace(data.status === "running" ? WHILE_RUNNING : isWaiting(data) ? WHILE_WAITING : 0);
    rememberTasks([data]);
  }, [data?.status]);

  if (!data) {
    if (task.error.value?.status === 404) return <Gone />;
    return <Card>{task.error.value ? <ReadError of={task} /> : <Loading of={task} rows={8} />}</Card>;
  }
  const stays = staysOf(data, events.data.value ?? []);
  return (
    <>
      <Header task={data} why={why.data.value} onChange={refresh} />
      <Why task={data} why={why.data.value} onChange={refresh} />
      {!why.data.value && <ReadError of={why} />}
      <ReadError of={task} />
      <div class="aside task-cards">
        <div class="stack">
          <States task={data} stays={stays} events={events} />
          <Spent task={data} stays={stays} why={why.data.value} />
          <Log task={data} />
        </div>
        <div class="stack">
          <Facts task={data} />
          <Values task={data} />
          <Graph task={data} />
        </div>
      </div>
    </>
  );
}

function Gone() {
  return (
    <Card>
      <EmptyState
        action={
          <Link class="go" to="tasks">
            All tasks
          </Link>
        }
      >
        No task has this id. It was never submitted, was deleted, or ended so long ago that it is no longer kept.
      </EmptyState>
    </Card>
  );
}

function States({ task, stays, events }: { task: TaskView; stays: readonly Stay[]; events: Resource<EventRow[]> }) {
  return (
    <Card class="no-phone" title="States" more={`${plural(task.attempt, "attempt")}, ${plural(task.losses, "loss", "losses")}`}>
      <ReadError of={events} />
      <StateDiagram path={pathOfStays(stays)} />
    </Card>
  );
}

function wholeTime(task: TaskView): string {
  const from = toMillis(task.submitted_at);
  if (!hasEnded(task) || !task.finished_at) return `${formatDuration(Math.max(0, Math.floor((secondTick.value - from) / 1000)))} since it was submitted`;
  return `${formatDuration((toMillis(task.finished_at) - from) / 1000)} from submit to end`;
}

function Spent({ task, stays, why }: { task: TaskView; stays: readonly Stay[]; why: Explanation | null }) {
  const asked = useQueryParam("attempt");
  const runs = runsOf(task);
  const heldNow = heldWords(task, why) ? reasonOf({ ...task, why: why?.text ?? task.why, status: task.status === "pending" || task.status === "retrying" ? "ready" : task.status }, zone.value, storeNow()) : null;
  const now = hasEnded(task) ? storeNow() : secondTick.value;
  const phases = phasesOf(stays, { task, now, heldNow });
  const failed = runs.filter((run) => run.error);
  // Without a wish the last failure shows: it is what one came for.
  const chosen = asked.value ? Number(asked.value) : (failed.at(-1)?.number ?? null);
  const run = runs.findLast((one) => one.number === chosen);
  return (
    <Card title="Where the time went" more={wholeTime(task)}>
      {phases.length === 0 ? <EmptyState>It has spent no time yet.</EmptyState> : <Timeline phases={phases} chosen={chosen} onChoose={(attempt) => asked.set(String(attempt), "replace")} />}
      {run && <Trace number={run.number} error={run.error} end={run.end} worker={run.worker_id} />}
    </Card>
  );
}

function Trace({ number, error, end, worker }: { number: number; error: string | null; end: string; worker: string }) {
  if (!error) {
    return (
      <div class="trace">
        <div class="tt">
          <b>Attempt {number}</b>
          <span class="mid">{end === "running" ? `It is running on ${worker}.` : end === "success" ? "It succeeded." : end === "snoozed" ? "It put itself off." : end === "lost" ? "Its worker was lost." : "It left no error."}</span>
        </div>
      </div>
    );
  }
  const [line = ""] = error.split("\n", 1);
  return <Traceback title={`Attempt ${number}`} error={line} frames={parseTraceback(error)} text={error} />;
}

function Log({ task }: { task: TaskView }) {
  const lines = logLines(task.log, runsOf(task));
  const more = `${plural(lines.length, "line")}${hasEnded(task) ? "" : ", live"}`;
  return (
    <Card title="Log" more={more}>
      {lines.length === 0 ? <p class="c dim">It has logged nothing. Lines that a handler writes with ctx.logger appear here.</p> : <LogTail lines={lines} />}
    </Card>
  );
}
