import type { ScheduleRun } from "../../api/types/schedules";
import { Duration } from "../../components/numbers";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { shortId } from "../../format/ids";
import { formatClock } from "../../format/times";
import { StatusShape } from "../../icons/StatusShape";
import type { Status } from "../../api/types";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { plainText } from "../../text/split";
import { outcomeText } from "./state";

const SHAPES: Readonly<Record<ScheduleRun["outcome"], Status>> = { success: "success", failed: "failed", dead: "dead", cancelled: "cancelled", skipped: "cancelled", missed: "blocked" };

function columnsFor(timezone: string): Column<ScheduleRun>[] {
  return [
    { id: "at", label: "Tick", width: "190px", phone: 1, cell: (row) => <TimeAgo at={row.at} form="date" inZone={timezone} /> },
    {
      id: "outcome",
      label: "What came of it",
      phone: 2,
      cell: (row) => (
        <span class="st">
          <StatusShape status={SHAPES[row.outcome] ?? "pending"} />
          {outcomeText(row)}
        </span>
      ),
    },
    { id: "late", label: "Late by", num: true, width: "90px", cell: (row) => <Duration seconds={row.late} /> },
    { id: "took", label: "Took", num: true, width: "90px", phone: 4, cell: (row) => <Duration seconds={row.duration} /> },
    {
      id: "task",
      label: "Task",
      num: true,
      width: "150px",
      phone: 3,
      title: (row) => (row.task_id ? plainText(row.task_id) : undefined),
      cell: (row) => (row.task_id ? <Link class="mono" to={pathOf("tasks", row.task_id)}>{taskText(row, row.task_id, timezone)}</Link> : <span class="dim">–</span>),
    },
  ];
}

/** A run is told by the time of its tick, or at which it was triggered. */
function taskText(run: ScheduleRun, id: string, timezone: string): string {
  if (!/@\d+/.test(id)) return plainText(shortId(id));
  return `@${formatClock(Date.parse(run.at), timezone)}${/@\d+\./.test(id) ? " by hand" : ""}`;
}

/** What came of the last runs, the latest first; ticks that were left out are among them. */
export function History({ runs, timezone }: { runs: readonly ScheduleRun[]; timezone: string }) {
  const rowTo = (row: ScheduleRun) => (row.task_id ? pathOf("tasks", row.task_id) : "");
  return <Table label="Last runs" rows={runs} columns={columnsFor(timezone)} rowKey={(row) => `${row.at} ${row.outcome} ${row.task_id ?? ""}`} rowTo={rowTo} />;
}
