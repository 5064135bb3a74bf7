import type { EventRow } from "../../api/types/events";
import { Duration } from "../../components/numbers";
import type { Column } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { formatDay, toMillis } from "../../format/times";
import { Icon } from "../../icons/Icon";
import { StatusShape } from "../../icons/StatusShape";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { storeNow } from "../../state/clock";
import { zone } from "../../state/prefs";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { lookOf } from "./kinds";
import { Subject } from "./Subject";

/** The clock alone for what is of today; the day before it for the rest. */
export function FactTime({ at }: { at: string }) {
  const moment = toMillis(at);
  const day = formatDay(moment, zone.value);
  return (
    <>
      {day !== formatDay(storeNow(), zone.value) && <span class="dim">{day} </span>}
      <TimeAgo at={at} form="millis" />
    </>
  );
}

export function KindMark({ kind }: { kind: string }) {
  const look = lookOf(kind);
  return (
    <span class="st">
      {look.status ? <StatusShape status={look.status} tone={look.tone} /> : <Icon name={look.icon ?? "events"} class={`kind-icon c-${look.tone}`} />}
      <Text>{kind}</Text>
    </span>
  );
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

/** The facts that end a run; others repeat how long the one before took. */
const ENDS = new Set(["task.succeeded", "task.retrying", "task.failed", "task.died", "task.snoozed", "task.lost", "task.cancelled"]);

const TIME: Column<EventRow> = { id: "at", label: "Time", width: "116px", phone: 2, class: "fact-time", cell: (row) => <FactTime at={row.at} /> };

const REST: readonly Column<EventRow>[] = [
  { id: "kind", label: "What", width: "176px", phone: 1, cell: (row) => <KindMark kind={row.kind} /> },
  { id: "about", label: "About", width: "232px", cut: true, phone: 3, title: (row) => plainText([row.type, row.id].filter(Boolean).join(" ")), cell: (row) => <Subject fact={row} /> },
  { id: "queue", label: "Queue", width: "92px", cut: true, class: "mid", cell: (row) => row.queue && <Link to={pathOf("queues", row.queue)}><Text>{row.queue}</Text></Link> },
  { id: "worker", label: "Worker", width: "148px", cut: true, class: "mid", title: (row) => plainText(row.worker_id), cell: (row) => row.worker_id && <Link to={pathOf("workers", row.worker_id)}><Text>{row.worker_id}</Text></Link> },
  { id: "attempt", label: "Attempt", num: true, width: "68px", class: "mid", cell: (row) => (row.attempt > 0 ? row.attempt : null) },
  { id: "took", label: "Took", num: true, width: "84px", phone: 4, cell: (row) => (ENDS.has(row.kind) && row.duration > 0 ? <Duration seconds={row.duration} /> : null) },
  { id: "detail", label: "Detail", cut: true, class: "mid", title: (row) => plainText(firstLine(row.detail)) || undefined, cell: (row) => <Text>{firstLine(row.detail)}</Text> },
];

const TODAY: readonly Column<EventRow>[] = [TIME, ...REST];
const DAYS: readonly Column<EventRow>[] = [{ ...TIME, width: "180px" }, ...REST];

/** Times need more room as soon as one of them is of another day. */
export function columnsFor(rows: readonly EventRow[]): readonly Column<EventRow>[] {
  const oldest = rows.at(-1);
  const today = formatDay(storeNow(), zone.value);
  return oldest && formatDay(toMillis(oldest.at), zone.value) !== today ? DAYS : TODAY;
}
