import type { ComponentChildren } from "preact";
import type { TaskView } from "../../api/types/tasks";
import { Card } from "../../components/Card";
import { type Fact, KeyValue } from "../../components/KeyValue";
import { Tag } from "../../components/marks";
import { TimeAgo } from "../../components/TimeAgo";
import { quote } from "../../filter/tokens";
import { formatDuration } from "../../format/durations";
import { priorityName } from "../../format/ids";
import { plural } from "../../format/numbers";
import { toMillis } from "../../format/times";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { hasEnded } from "./actions";

function when(at: string | null): ComponentChildren {
  if (!at) return null;
  return (
    <>
      <TimeAgo at={at} form="clock" />, <TimeAgo at={at} />
    </>
  );
}

function attemptsText(task: TaskView): string {
  return task.max_retry === null ? plural(task.attempt, "attempt") : `${task.attempt} of ${task.max_retry + 1} used`;
}

function named(values: Record<string, string>, toQuery: ((name: string, value: string) => string) | null): ComponentChildren {
  const entries = Object.entries(values);
  if (entries.length === 0) return null;
  return (
    <span class="tag-row">
      {entries.map(([name, value]) =>
        toQuery ? (
          <Link key={name} to="tasks" query={{ q: toQuery(name, value) }}>
            <Tag>{`${name}:${value}`}</Tag>
          </Link>
        ) : (
          <Tag key={name}>{`${name}:${value}`}</Tag>
        ),
      )}
    </span>
  );
}

function linked(to: string, text: string, query?: Record<string, string>): ComponentChildren {
  return (
    <Link to={to} query={query}>
      <Text>{text}</Text>
    </Link>
  );
}

function dedupText(task: TaskView): ComponentChildren {
  if (!task.dedup_key) return null;
  const until = task.unique === "queued" ? "until it starts" : task.unique === "unfinished" ? "until it ends" : task.dedup_ttl ? `for ${formatDuration(task.dedup_ttl)}` : "";
  return (
    <>
      <span class="mono">
        <Text>{task.dedup_key}</Text>
      </span>{" "}
      <span class="dim">{until}</span>
    </>
  );
}

function keptText(task: TaskView): ComponentChildren {
  if (task.retention === null) return null;
  if (!hasEnded(task) || !task.finished_at) return `${formatDuration(task.retention)} after it ends`;
  return <TimeAgo at={toMillis(task.finished_at) + task.retention * 1000} form="date" />;
}

/** All that is known of a task in a few words; values lead to the tasks that share them. */
export function Facts({ task }: { task: TaskView }) {
  const isHeld = task.held_by !== null; // its time is then when it asks again, and a worker has only asked for it
  const isDelayed = !isHeld && toMillis(task.scheduled_at) - toMillis(task.submitted_at) > 1000;
  const hasRun = !isHeld || task.attempt > 0;
  const facts: Fact[] = [
    ["Queue", <>{linked(pathOf("queues", task.queue), task.queue)}, {priorityName(task.priority)} ({task.priority})</>],
    ["Key", task.key && linked("tasks", task.key, { q: `key:${quote(task.key)}` })],
    ["Schedule", task.schedule_id && linked(pathOf("schedules", task.schedule_id), task.schedule_id)],
    ["Submitted", when(task.submitted_at)],
    ["Due", isDelayed && when(task.scheduled_at)],
    ["Started", hasRun && when(task.started_at)],
    ["Ended", when(task.finished_at)],
    ["Worker", hasRun && task.worker_id && linked(pathOf("workers", task.worker_id), task.worker_id)],
    ["Attempts", attemptsText(task)],
    ["Losses", task.losses > 0 && plural(task.losses, "time")],
    ["Timeout", task.timeout !== null && (task.timeout === 0 ? "no limit" : `${formatDuration(task.timeout)} an attempt`)],
    ["Expires", when(task.expires_at)],
    ["Dedup key", dedupText(task)],
    ["Tags", named(task.tags, (name, value) => `tag.${name}:${quote(value)}`)],
    ["Requires", named(task.requires, null)],
    ["Runs on", task.executor !== "local" && <Text>{[task.executor, task.target].filter(Boolean).join(", ")}</Text>],
    ["Target", task.executor === "local" && task.target && <Text>{task.target}</Text>],
    ["Kept until", keptText(task)],
  ];
  return (
    <Card title="Facts">
      <KeyValue facts={facts} />
    </Card>
  );
}
