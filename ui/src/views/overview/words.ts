import type { Attention, Overview } from "../../api/types/overview";
import type { QueueRow } from "../../api/types/queues";
import { formatCount } from "../../format/numbers";
import type { Tone } from "../../icons/StatusShape";
import { isBehind, isShut } from "../queues/state";

export interface Verdict {
  tone: Tone;
  /** "Degraded"; a duration may follow. */
  say: string;
  /** Since when, in milliseconds; null where nothing tells it. */
  since: number | null;
  /** What else there is to say, in a sentence or two. */
  rest: string;
}

/** A breaker heals itself, but what it guards does not work; a pause or a lost worker alone is no trouble. */
function isTrouble(row: Attention): boolean {
  return row.level === "bad" || row.kind === "breaker";
}

/** The earliest begin that is known. The moment of a breaker is its end, that of dead letters the last one. */
function sinceOf(rows: readonly Attention[]): number | null {
  const begins = rows.filter((row) => (row.kind === "alert" || row.kind === "schedule") && row.at !== null).map((row) => Date.parse(row.at ?? ""));
  return begins.length > 0 ? Math.min(...begins) : null;
}

function listed(names: readonly string[]): string {
  if (names.length < 2) return names.join("");
  if (names.length > 3) return `${names.slice(0, 2).join(", ")} and ${formatCount(names.length - 2)} more`;
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** How the queues are that nothing holds: the question of everybody else. */
function keepingUp(queues: readonly QueueRow[]): string {
  const open = queues.filter((queue) => !queue.paused && !isShut(queue));
  const behind = open.filter(isBehind).map((queue) => queue.name);
  if (behind.length > 0) return `${behind.length === 1 ? "Queue" : "Queues"} ${listed(behind)} ${behind.length === 1 ? "falls" : "fall"} behind.`;
  if (open.length > 0 && open.every((queue) => queue.workers === 0)) return "Nothing starts until a worker is up.";
  if (open.length === 0) return queues.length > 0 ? "Every queue is paused or held." : "";
  return open.length < queues.length ? "Every other queue keeps up." : "Every queue keeps up.";
}

function needing(bad: number, held: number): string {
  const parts = [];
  if (bad > 0) parts.push(`${formatCount(bad)} ${bad === 1 ? "thing needs" : "things need"} you`);
  if (held > 0) parts.push(`${formatCount(held)} ${held === 1 ? "is held or heals itself" : "are held or heal themselves"}`);
  return parts.length > 0 ? `${parts.join(", ")}.` : "";
}

export function verdictOf({ attention, status, queues }: Overview): Verdict {
  const trouble = attention.filter(isTrouble);
  const bad = attention.filter((row) => row.level === "bad").length;
  const held = attention.filter((row) => row.level === "heal").length;
  const { health } = status;
  const wrong = Object.values(health.checks).filter((check) => check.status !== "ok");
  if (health.status === "unhealthy") return { tone: "bad", say: "Unhealthy", since: null, rest: sentence(wrong[0]?.message ?? "") };
  if (trouble.length > 0 || health.status === "degraded") {
    const why = trouble.length > 0 ? needing(bad, held) : sentence(wrong[0]?.message ?? "");
    return { tone: "heal", say: "Degraded", since: sinceOf(trouble), rest: `${why} ${keepingUp(queues)}`.trim() };
  }
  const behind = queues.some((queue) => !queue.paused && isBehind(queue));
  return { tone: "good", say: behind ? "Healthy." : "Healthy. Nothing needs you.", since: null, rest: behind || held > 0 ? keepingUp(queues) : "" };
}

function sentence(text: string): string {
  if (text === "") return "";
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

/** What stands between the title of a row and its text, so that the two read as one. */
export function joinOf(row: Attention): string {
  if (row.kind === "breaker") return " ";
  if (row.kind === "alert" || row.kind === "schedule") return ": ";
  return row.text.startsWith("“") ? ": " : ". ";
}

/** The path of a row. The API puts names into it as they are. */
export function placeOf(row: Attention): string {
  if (row.kind === "type") return "queues?by=type";
  const place = /^(?:limits\/breakers|[^/]+)(?=\/)/.exec(row.link)?.[0];
  return place === undefined ? row.link : `${place}/${encodeURIComponent(row.link.slice(place.length + 1))}`;
}
