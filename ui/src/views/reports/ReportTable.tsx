import type { Percentiles, ReportBy, ReportRow } from "../../api/types/reports";
import { Count, Duration } from "../../components/numbers";
import { type Column, type Sort, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { formatDuration } from "../../format/durations";
import { formatCount, formatPercent } from "../../format/numbers";
import { formatDay } from "../../format/times";
import { tokenText } from "../../filter/tokens";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { zone } from "../../state/prefs";
import { Text } from "../../text/Text";
import { Failed } from "../queues/QueueTable";
import { changeOf, type Compared } from "./compare";

interface ReportTableProps {
  rows: readonly Compared[];
  total: Compared;
  by: ReportBy;
  sort: Sort;
  onSort: (sort: Sort) => void;
}

const TOTAL = "total";

function isTotal({ row }: Compared): boolean {
  return row.name === TOTAL && row.at === null;
}

function Name({ one, by }: { one: Compared; by: ReportBy }) {
  const { row } = one;
  if (isTotal(one)) return <b>Total</b>;
  if (by === "day" && row.at) return <>{formatDay(Date.parse(row.at), "UTC")}</>;
  if (by === "hour" && row.at) return <TimeAgo at={row.at} form="date" inZone={zone.value} />;
  return (
    <Link class="strong" to={by === "queue" ? pathOf("queues", row.name) : "queues"} query={by === "type" ? { by: "type", open: row.name } : undefined}>
      <Text>{row.name}</Text>
    </Link>
  );
}

/** The tasks behind a number, where a filter can find them. */
function tasksOf({ row }: Compared, by: ReportBy, status: string): { q: string } | undefined {
  if (by !== "type" && by !== "queue") return undefined;
  const which = row.name === TOTAL && row.at === null ? "" : tokenText(by, [row.name]);
  return { q: `${status} ${which}`.trim() };
}

function Amount({ value, was, query }: { value: number; was: number | undefined; query?: { q: string } | undefined }) {
  return (
    <div class="two">
      {query ? <Count value={value} to="tasks" query={query} /> : <Count value={value} />}
      {was !== undefined && <small>{formatCount(was)}</small>}
    </div>
  );
}

/** A duration now, and below it what it was; a notable change has a word. */
function Time({ now, was, isCompared }: { now: number | undefined; was: number | undefined; isCompared: boolean }) {
  const change = changeOf(now, was);
  return (
    <div class="two">
      <Duration seconds={now} />
      {isCompared && (
        <small>
          {was === undefined ? "–" : formatDuration(was)}
          {change && <span class="sr">, {change}</span>}
          {change && <span aria-hidden="true">{change === "slower" ? " ↑" : " ↓"}</span>}
        </small>
      )}
    </div>
  );
}

function timeColumn(id: string, label: string, read: (row: ReportRow) => Percentiles | null, share: keyof Percentiles, phone?: 4): Column<Compared> {
  return {
    id,
    label,
    num: true,
    width: "84px",
    ...(phone ? { phone } : {}),
    sort: "descending",
    cell: ({ row, before }) => <Time now={read(row)?.[share]} was={before ? read(before)?.[share] : undefined} isCompared={before !== null} />,
  };
}

function columnsFor(by: ReportBy): readonly Column<Compared>[] {
  const wait = (row: ReportRow) => row.wait;
  const run = (row: ReportRow) => row.run;
  const amount = (id: "submitted" | "success" | "dead" | "cancelled" | "retries", label: string, width: string, status: string | null, phone?: 2): Column<Compared> => ({
    id,
    label,
    num: true,
    width,
    ...(phone ? { phone } : {}),
    sort: "descending",
    cell: (one) => <Amount value={one.row[id] + (id === "dead" ? one.row.failed : 0)} was={one.before ? one.before[id] + (id === "dead" ? one.before.failed : 0) : undefined} query={status === null ? undefined : tasksOf(one, by, status)} />,
  });
  return [
    { id: "name", label: by === "day" ? "Day, UTC" : by === "hour" ? "Hour" : by === "queue" ? "Queue" : "Type", phone: 1, cut: true, title: ({ row }) => (row.at ? undefined : row.name), sort: "ascending", cell: (one) => <Name one={one} by={by} /> },
    amount("submitted", "Submitted", "98px", "", 2),
    amount("success", "Success", "88px", "status:success"),
    amount("dead", "Failed", "64px", "status:dead,failed"),
    amount("cancelled", "Cancelled", "74px", "status:cancelled"),
    amount("retries", "Retries", "62px", null),
    {
      id: "rate",
      label: "Failure rate",
      num: true,
      width: "100px",
      phone: 3,
      sort: "descending",
      cell: ({ row, before }) => (
        <div class="two">
          <Failed share={row.failure_rate} />
          <span class="phone-words"> failed, run p95</span>
          {before && <small>{before.failure_rate === null ? "–" : formatPercent(before.failure_rate)}</small>}
        </div>
      ),
    },
    timeColumn("wait50", "Wait p50", wait, "p50"),
    timeColumn("wait95", "Wait p95", wait, "p95"),
    timeColumn("wait99", "Wait p99", wait, "p99"),
    timeColumn("run50", "Run p50", run, "p50"),
    timeColumn("run95", "Run p95", run, "p95", 4),
    timeColumn("run99", "Run p99", run, "p99"),
  ];
}

const VALUES: Readonly<Record<string, (row: ReportRow) => number>> = {
  submitted: (row) => row.submitted,
  success: (row) => row.success,
  dead: (row) => row.dead + row.failed,
  cancelled: (row) => row.cancelled,
  retries: (row) => row.retries,
  rate: (row) => row.failure_rate ?? -1,
  wait50: (row) => row.wait?.p50 ?? -1,
  wait95: (row) => row.wait?.p95 ?? -1,
  wait99: (row) => row.wait?.p99 ?? -1,
  run50: (row) => row.run?.p50 ?? -1,
  run95: (row) => row.run?.p95 ?? -1,
  run99: (row) => row.run?.p99 ?? -1,
};

/** A report is read whole, so all of it can be put in order here. */
export function sortRows(rows: readonly Compared[], sort: Sort): Compared[] {
  const sign = sort.direction === "ascending" ? 1 : -1;
  const value = VALUES[sort.by];
  return rows.toSorted((one, other) => {
    const apart = value ? value(one.row) - value(other.row) : 0;
    return apart === 0 ? (one.row.name < other.row.name ? -1 : 1) * (value ? 1 : sign) : apart * sign;
  });
}

export function ReportTable({ rows, total, by, sort, onSort }: ReportTableProps) {
  const isCompared = total.before !== null;
  return (
    <Table
      label="Report"
      rows={[...sortRows(rows, sort), total]}
      columns={columnsFor(by)}
      tall={isCompared}
      rowKey={(one) => (isTotal(one) ? "the total" : `row ${one.row.name}`)}
      rowClass={(one) => (isTotal(one) ? "report-total" : undefined)}
      sort={sort}
      onSort={onSort}
    />
  );
}
