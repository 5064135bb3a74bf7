import type { TaskRow } from "../../api/types/tasks";
import { formatSpan } from "../../format/durations";
import { shortId } from "../../format/ids";
import { formatClock, formatDate, toMillis } from "../../format/times";

/** Times as the API writes them into its sentences: "2026-11-18 04:44:04 UTC" or "2026-11-18T04:44:04Z". */
const TIME_IN_TEXT = /\b(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?: UTC|Z)/g;
const ID_IN_TEXT = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/** A sentence of the API with its times in the zone that the page shows: the clock alone for those of today. */
export function inZoneOfPage(text: string, zone: string, now: number): string {
  return text.replace(TIME_IN_TEXT, (_, day: string, clock: string) => {
    const at = Date.parse(`${day}T${clock}Z`);
    return Math.abs(at - now) < 64_800_000 ? formatClock(at, zone) : formatDate(at, zone, now);
  });
}

/** Sentences that name what stands in the row already are told in fewer words. */
const SHORTER: readonly (readonly [RegExp, string])[] = [
  [/^Queue \S+ is paused(?: since [^:]+:\d\d:\d\d)?/, "queue paused"],
  [/^Type \S+ is paused(?: since [^:]+:\d\d:\d\d)?/, "type paused"],
  [/^No worker that is up on queue \S+ knows task type .+$/, "no worker knows this type"],
  [/^No worker that is up serves queue .+$/, "no worker serves this queue"],
  [/^Breaker \S+ is open/, "breaker open"],
  [/^Breaker \S+ was opened (by \S+|by hand) at [\w :]*\d\d:\d\d(?::\d\d)?/, "breaker opened $1"],
  [/^(?:Type|Key|Tag|Queue) \S+ was switched off (by \S+|by hand) at [\w :]*\d\d:\d\d(?::\d\d)?/, "switched off $1"],
  [/ after \d+ failures?(?: in a row)?/, ""],
  [/^The limit of .+ is reached: /, "limit reached: "],
  [/^The rate of .+ \((.+?)\) is used up; the next run may begin at /, "rate of $1 used up until "],
  [/^All workers that may run it are busy(?:; )?/, "workers busy, "],
  [/ (?:of its queue )?(?:is|are) before it$/, " ahead"],
  [/^It is ready; /, ""],
  [/^It is ready and will be taken next$/, "is taken next"],
  [/^It (?=waits|is )/, ""],
];

/** A sentence as a phrase for a row: no "It", no full stop, ids by their tails. */
function asPhrase(text: string): string {
  let phrase = text.replace(ID_IN_TEXT, (id) => shortId(id)).replace(/\.$/, "");
  for (const [long, short] of SHORTER) phrase = phrase.replace(long, short);
  phrase = phrase.replace(/, $/, "");
  // A name may stand first, so only known first words lose their capital.
  return /^(Queue|Type|Breaker|Key|Tag|No|All|The|Only) /.test(phrase) ? phrase.charAt(0).toLowerCase() + phrase.slice(1) : phrase;
}

function dueText(row: TaskRow, zone: string, now: number): string {
  const at = toMillis(row.scheduled_at);
  if (at <= now) return "due now";
  return row.status === "retrying" ? `due in ${formatSpan(Math.ceil((at - now) / 1000))}` : `due ${formatClockOrDate(at, zone, now)}, in ${formatSpan(Math.ceil((at - now) / 1000))}`;
}

function formatClockOrDate(at: number, zone: string, now: number): string {
  return at - now < 64_800_000 ? formatClock(at, zone) : formatDate(at, zone, now);
}

/** Who runs a task, or why it waits, or what went wrong: the one thing a row must say. */
export function reasonOf(row: TaskRow, zone: string, now: number): string {
  switch (row.status) {
    case "running":
    case "success":
      return row.worker_id ?? "";
    case "dead":
    case "failed":
      return row.error ?? "";
    case "cancelled":
      return row.error ?? (row.started_at ? `was stopped${row.worker_id ? ` on ${row.worker_id}` : ""}` : "before it began");
    case "retrying":
      if (row.held_by === null) return `${dueText(row, zone, now)}${row.error ? `: ${row.error}` : ""}`;
      break;
    case "pending":
      if (row.held_by === null && (row.why === null || row.why.startsWith("It waits for its time"))) return dueText(row, zone, now);
      break;
    default:
      break;
  }
  return row.why === null ? "" : asPhrase(inZoneOfPage(row.why, zone, now));
}
