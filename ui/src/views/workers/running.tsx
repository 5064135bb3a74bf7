import type { RunningTask } from "../../api/types/workers";
import type { TypeRow } from "../../api/types/queues";
import { Bar } from "../../components/marks";
import { formatDuration } from "../../format/durations";
import { formatPercent } from "../../format/numbers";
import { shortId } from "../../format/ids";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";

/** The longest usual run of each type: its p99 of the last hour, in seconds. */
export type UsualRuns = ReadonlyMap<string, number>;

export function usualRuns(types: readonly TypeRow[]): UsualRuns {
  return new Map(types.flatMap((type) => (type.run ? [[type.name, type.run.p99] as const] : [])));
}

function secondsOf(task: RunningTask, now: number): number {
  return task.started_at === null ? 0 : Math.max(0, (now - Date.parse(task.started_at)) / 1000);
}

/** Longer than its type's p99. What is over in a moment is never told as long. */
export function isLong(task: RunningTask, usual: UsualRuns, now: number): boolean {
  const p99 = usual.get(task.type);
  return p99 !== undefined && secondsOf(task, now) > Math.max(1, p99 * 1.05);
}

/** How long a task ran when it was read; amber once it is longer than usual. It may have ended since, so it does not tick. */
export function Running({ task, usual, now }: { task: RunningTask; usual: UsualRuns; now: number }) {
  if (task.started_at === null) return <span class="dim">–</span>;
  const long = isLong(task, usual, now);
  const seconds = secondsOf(task, now);
  return (
    <span class={long ? "c-heal nw" : "nw"}>
      {formatDuration(seconds < 10 ? Math.round(seconds * 10) / 10 : seconds)}
      {long && <span class="sr">, longer than p99</span>}
    </span>
  );
}

export function TaskId({ id }: { id: string }) {
  return (
    <Link class="mono" to={pathOf("tasks", id)} title={id}>
      <Text>{shortId(id)}</Text>
    </Link>
  );
}

export function Progress({ task }: { task: RunningTask }) {
  if (task.cancelling) return <span class="c-heal">told to stop</span>;
  if (task.progress === null) return <span class="dim">–</span>;
  return (
    <span class="row">
      <Bar share={task.progress} label="Progress" />
      <span>{formatPercent(task.progress)}</span>
    </span>
  );
}
