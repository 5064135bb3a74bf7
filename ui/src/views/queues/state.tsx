import type { Hold, QueueRow } from "../../api/types/queues";
import { Held } from "../../components/marks";
import { formatDuration } from "../../format/durations";
import { formatCount, formatFigure, plural } from "../../format/numbers";
import { StatusShape } from "../../icons/StatusShape";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";

/** Tasks in a side lane: their type is paused, or no worker knows it. */
export function parkedOf(queue: QueueRow): number {
  return Math.min(
    queue.ready,
    Object.values(queue.parked).reduce((sum, count) => sum + count, 0),
  );
}

/** Tasks that are ready, but may not start: of a paused queue that is everything. */
export function stoppedOf(queue: QueueRow): number {
  return queue.paused ? queue.ready : parkedOf(queue);
}

/** All that is held: those, and what waits at limits, breakers and switches. Held is not late. */
export function heldOf(queue: QueueRow): number {
  return queue.holds.reduce((sum, hold) => sum + (hold.waiting ?? 0), stoppedOf(queue));
}

/** By what, in a word or two. */
export function heldBy(queue: QueueRow): string {
  if (queue.paused) return "by the pause";
  const hold = holdOf(queue);
  if (hold) return queue.holds.length > 1 ? "by limits, breakers or switches" : `by a ${hold.by}`;
  return heldOf(queue) > 0 ? "by their type" : "nothing is held";
}

/** What could start at once. */
export function openOf(queue: QueueRow): number {
  return queue.ready - stoppedOf(queue);
}

const HOLDS = {
  breaker: { icon: "breaker", word: "breaker open" },
  switch: { icon: "switch", word: "switched off" },
  limit: { icon: "limits", word: "limit reached" },
} as const;

/** The most severe of what holds tasks of the queue back; a limit is no more than its purpose. */
function holdOf(queue: QueueRow): Hold | undefined {
  const order: Hold["by"][] = ["breaker", "switch", "limit"];
  return queue.holds.toSorted((one, other) => order.indexOf(one.by) - order.indexOf(other.by))[0];
}

/** An open breaker, or somebody's switch, holds tasks of it. At a limit they go on, as fast as it lets them. */
export function isShut(queue: QueueRow): boolean {
  return queue.holds.some((hold) => hold.by !== "limit");
}

/** More comes in than goes out, by more than chance, and something waits. */
export function isBehind(queue: QueueRow): boolean {
  const growth = queue.in_rate - queue.out_rate;
  return openOf(queue) > 0 && growth > Math.max(1, queue.in_rate * 0.05);
}

/** Seconds until nothing waits if it goes on like this; null if that is not in sight. */
export function drainsIn(queue: QueueRow): number | null {
  const gain = queue.out_rate - queue.in_rate;
  return openOf(queue) > 0 && gain > 0 ? (openOf(queue) / gain) * 60 : null;
}

/** The types in side lanes, the most first. */
export function parkedTypes(queue: QueueRow): { type: string; count: number }[] {
  return Object.entries(queue.parked)
    .filter(([, count]) => count > 0)
    .map(([type, count]) => ({ type, count }))
    .sort((one, other) => other.count - one.count);
}

/** "2 min 10 s", "grows 7/min", or a dash where nothing drains. */
export function Drains({ queue }: { queue: QueueRow }) {
  const seconds = drainsIn(queue);
  if (isBehind(queue)) return <>grows {formatFigure(Math.round((queue.in_rate - queue.out_rate) * 10) / 10)}/min</>;
  if (seconds === null) return <span class="dim">–</span>;
  return <>{seconds < 1 ? "at once" : formatDuration(seconds)}</>;
}

/** How a queue is, in a few words: who holds it, or whether it keeps up. */
export function QueueState({ queue }: { queue: QueueRow }) {
  if (queue.paused) return <Held icon="pause">paused</Held>;
  if (queue.workers === 0 && queue.ready > 0) {
    return (
      <span class="st c-bad">
        <StatusShape status="failed" />
        no worker
      </span>
    );
  }
  if (isBehind(queue)) {
    return (
      <span class="nw">
        <Drains queue={queue} />
      </span>
    );
  }
  const parked = parkedTypes(queue);
  const first = parked[0];
  if (first) return <Held icon="info">{parked.length > 1 ? `${formatCount(parked.length)} types held` : <><Text>{first.type}</Text> held</>}</Held>;
  const hold = holdOf(queue);
  if (hold) {
    return (
      <span title={plainText(`${HOLDS[hold.by].word}: ${hold.of}`)}>
        <Held icon={HOLDS[hold.by].icon}>{HOLDS[hold.by].word}</Held>
      </span>
    );
  }
  if (queue.workers === 0) return <span class="dim">no worker</span>;
  return <span class="dim">keeps up</span>;
}

function waiting(count: number): string {
  return `${plural(count, "task waits", "tasks wait")}.`;
}

/** " 5 wait at breaker type:charge_payment." of each that holds tasks back. */
function atGates(queue: QueueRow): string {
  const told = queue.holds.slice(0, 5).map(({ by, of, waiting: count }) => `${count === null ? "Some" : formatCount(count)} ${count === 1 ? "waits" : "wait"} at ${by} ${of}.`);
  return told.length > 0 ? ` ${told.join(" ")}` : "";
}

/** The same for a reader who looks at one queue: a sentence or two. */
export function sentenceOf(queue: QueueRow): string {
  const parked = parkedTypes(queue).map(({ type, count }) => `${formatCount(count)} of type ${type}`);
  const held = (parked.length > 0 ? ` Held, since the type is paused or no worker can run it: ${parked.slice(0, 5).join(", ")}.` : "") + atGates(queue);
  if (queue.paused) return `It is paused${queue.note ? `: “${queue.note}”` : ""}. What runs goes on; ${waiting(queue.ready)}`;
  if (queue.workers === 0) return `No worker takes tasks from it. ${waiting(queue.ready)}`;
  if (isBehind(queue)) return `It falls behind: ${formatFigure(queue.in_rate)} a minute come in, ${formatFigure(queue.out_rate)} go out.${held}`;
  const seconds = drainsIn(queue);
  if (seconds !== null && seconds >= 60) return `It catches up in ${formatDuration(seconds)} if it goes on like this.${held}`;
  return isShut(queue) ? held.trim() : `It keeps up.${held}`;
}

/** Whose turn it is. */
export function toneOf(queue: QueueRow): "heal" | "bad" | "good" {
  if (queue.paused) return "heal";
  if (queue.workers === 0 && queue.ready > 0) return "bad";
  return isBehind(queue) || heldOf(queue) > 0 || queue.holds.length > 0 ? "heal" : "good";
}
