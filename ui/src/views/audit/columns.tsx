import type { AuditRow, Journal } from "../../api/types/events";
import type { Column } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { formatCount } from "../../format/numbers";
import { formatClock, formatDay, toMillis } from "../../format/times";
import { StatusShape } from "../../icons/StatusShape";
import { storeNow } from "../../state/clock";
import { zone } from "../../state/prefs";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { Target } from "./Target";

/** The clock, and below it how long ago, or the day. */
function EntryTime({ at }: { at: string }) {
  const moment = toMillis(at);
  const day = formatDay(moment, zone.value);
  const isToday = day === formatDay(storeNow(), zone.value);
  return (
    <div class="two">
      {formatClock(moment, zone.value)}
      <small>{isToday ? <TimeAgo at={at} /> : day}</small>
    </div>
  );
}

/** "done", or why it was not. */
export function Result({ result }: { result: string }) {
  const isDone = result === "done";
  return (
    <span class="st">
      <StatusShape status={isDone ? "success" : "failed"} />
      <Text>{isDone ? "done" : result.replaceAll("_", " ")}</Text>
    </span>
  );
}

const MAIN: readonly Column<AuditRow>[] = [
  { id: "at", label: "Time", width: "112px", phone: 2, cell: (row) => <EntryTime at={row.at} /> },
  {
    id: "who",
    label: "Who",
    width: "15%",
    cut: true,
    phone: 3,
    title: (row) => plainText(row.who),
    cell: (row) => (
      <div class="two">
        <span class="strong">
          <Text>{row.who || "unknown"}</Text>
        </span>
        <small>
          <Text>{row.role}</Text>
        </small>
      </div>
    ),
  },
  {
    id: "from",
    label: "From where",
    width: "14%",
    cut: true,
    title: (row) => plainText(`${row.via} ${row.address}`.trim()),
    cell: (row) => (
      <div class="two">
        <Text>{row.address || "–"}</Text>
        <small>
          <Text>{row.via}</Text>
        </small>
      </div>
    ),
  },
  {
    id: "what",
    label: "What",
    width: "26%",
    cut: true,
    phone: 1,
    title: (row) => plainText(`${row.what} ${row.target}`.trim()),
    cell: (row) => (
      <div class="two">
        <Text>{row.what}</Text>
        <small>
          <Target row={row} />
        </small>
      </div>
    ),
  },
  { id: "detail", label: "Detail", cut: true, class: "mid", title: (row) => plainText(row.detail) || undefined, cell: (row) => <Text>{row.detail}</Text> },
  { id: "result", label: "Result", width: "148px", phone: 4, cut: true, title: (row) => plainText(row.result), cell: (row) => <Result result={row.result} /> },
];

const COUNT: Column<AuditRow> = { id: "count", label: "Count", num: true, width: "76px", cell: (row) => formatCount(row.count) };

const COUNTED: readonly Column<AuditRow>[] = [...MAIN, COUNT];

/** Changes are told one by one; the others are counted together. */
export function columnsFor(journal: Journal): readonly Column<AuditRow>[] {
  return journal === "changes" ? MAIN : COUNTED;
}
