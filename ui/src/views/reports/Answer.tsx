import type { Report, ReportBy } from "../../api/types/reports";
import { Figure, Figures } from "../../components/Figure";
import { TimeAgo } from "../../components/TimeAgo";
import { durationMeasure, formatDuration } from "../../format/durations";
import { formatCount, formatPercent, percentFigure, plural } from "../../format/numbers";
import { Text } from "../../text/Text";
import { type Compared, slowest, worst } from "./compare";

interface AnswerProps {
  report: Report;
  total: Compared;
  rows: readonly Compared[];
  by: ReportBy;
  wantsCompare: boolean;
}

/** How it was, and what got slower. */
export function Answer({ report, total, rows, by, wantsCompare }: AnswerProps) {
  return (
    <section class="card verdict report-answer" aria-label="In short">
      <div class="h">
        <span class="say">{headline(total)}</span>
        <span>
          <Text>{remark(rows, by)}</Text>
        </span>
        <span class="sp" />
        <span class="small dim">
          <TimeAgo at={report.since} form="date" /> to <TimeAgo at={report.until} form="date" />
          {wantsCompare && total.before === null && ", nothing before it to compare with"}
        </span>
      </div>
      <Totals total={total} missed={report.total.missed} />
    </section>
  );
}

function headline({ row }: Compared): string {
  const ended = row.success + row.failed + row.dead;
  const good = ended > 0 ? `, ${formatPercent(row.success / ended)} of those that ended succeeded` : "";
  return `${plural(row.submitted, "task")}${good}.`;
}

function remark(rows: readonly Compared[], by: ReportBy): string {
  if (by !== "type" && by !== "queue") return "";
  const parts = [];
  const bad = worst(rows);
  if (bad) parts.push(`Most failures: ${bad.row.name} with ${formatCount(bad.row.failed + bad.row.dead)}.`);
  const slow = slowest(rows);
  if (slow?.before) parts.push(`${slow.row.name} got slower most: run p95 ${formatDuration(slow.row.run?.p95 ?? 0)}, before ${formatDuration(slow.before.run?.p95 ?? 0)}.`);
  else if (rows.some((one) => one.before !== null)) parts.push("Nothing got notably slower.");
  return parts.join(" ");
}

function Totals({ total: { row, before }, missed }: { total: Compared; missed: number }) {
  const was = (text: string | null) => (before ? `before ${text ?? "–"}` : undefined);
  const ended = row.success + row.failed + row.dead;
  const endedBefore = before ? before.success + before.failed + before.dead : 0;
  const wait = row.wait ? durationMeasure(row.wait.p95) : null;
  const run = row.run ? durationMeasure(row.run.p95) : null;
  return (
    <Figures label="Sums">
      <Figure title="Submitted" value={formatCount(row.submitted)} sub={was(before && formatCount(before.submitted)) ?? `${plural(row.started, "attempt")} began`} />
      <Figure title="Success" value={ended > 0 ? percentFigure(row.success / ended) : "–"} unit={ended > 0 ? "%" : ""} sub={was(endedBefore > 0 && before ? formatPercent(before.success / endedBefore) : null) ?? `${formatCount(row.success)} of ${formatCount(ended)}`} />
      <Figure title="Failed for good" value={formatCount(row.failed + row.dead)} sub={was(before && formatCount(before.failed + before.dead)) ?? `${formatCount(row.cancelled)} cancelled`} to="failures" />
      <Figure title="Retries" value={formatCount(row.retries)} sub={was(before && formatCount(before.retries)) ?? `${formatCount(row.losses)} by lost workers`} />
      <Figure title="Wait, p95" value={wait?.figure ?? "–"} unit={wait?.unit ?? ""} sub={was(before?.wait ? formatDuration(before.wait.p95) : null) ?? (row.wait ? `p50 ${formatDuration(row.wait.p50)} · p99 ${formatDuration(row.wait.p99)}` : "nothing started")} />
      <Figure
        title="Run, p95"
        value={run?.figure ?? "–"}
        unit={run?.unit ?? ""}
        sub={missed > 0 ? `${formatCount(missed)} facts uncounted` : (was(before?.run ? formatDuration(before.run.p95) : null) ?? (row.run ? `p50 ${formatDuration(row.run.p50)} · p99 ${formatDuration(row.run.p99)}` : "nothing ran"))}
      />
    </Figures>
  );
}
