import { useMemo } from "preact/hooks";
import type { ReportRow } from "../../api/types/reports";
import { Card } from "../../components/Card";
import { Chart, type ChartSeries } from "../../components/Chart";
import { Legend } from "../../components/marks";
import { formatDuration } from "../../format/durations";

/** The same rows as lines: amounts, failures on their own scale, and how long runs took. */
export function ReportChart({ rows, by }: { rows: readonly ReportRow[]; by: "day" | "hour" }) {
  const times = useMemo(() => rows.map((row) => Date.parse(row.at ?? "")), [rows]);
  const amounts = useMemo<ChartSeries[]>(
    () => [
      { label: "success", values: rows.map((row) => row.success), area: true },
      { label: "submitted", values: rows.map((row) => row.submitted), line: "dotted" },
    ],
    [rows],
  );
  const failures = useMemo<ChartSeries[]>(
    () => [
      { label: "died", values: rows.map((row) => row.failed + row.dead), bars: "bad" },
      { label: "retried", values: rows.map((row) => row.retries), bars: "heal" },
    ],
    [rows],
  );
  const runs = useMemo<ChartSeries[]>(
    () => [
      { label: "run p95", values: rows.map((row) => row.run?.p95 ?? null) },
      { label: "wait p95", values: rows.map((row) => row.wait?.p95 ?? null), line: "dotted" },
    ],
    [rows],
  );
  const key = `${by} ${times[0] ?? 0}`;
  return (
    <div class="grid g2">
      <Card
        title={by === "day" ? "Tasks a day" : "Tasks an hour"}
        more={<Legend entries={[{ label: "success", line: "solid" }, { label: "submitted", line: "dotted" }, { label: "retried", tone: "heal" }, { label: "died", tone: "bad" }]} />}
      >
        <Chart label="Tasks" times={times} series={amounts} sync="report" scaleKey={key} hideTimes />
        <Chart label="Failed attempts" times={times} series={failures} height={56} unit="failed attempts" sync="report" scaleKey={key} />
      </Card>
      <Card title="Run and wait, p95" more={<Legend entries={[{ label: "run", line: "solid" }, { label: "wait", line: "dotted" }]} />}>
        <Chart label="Run and wait, p95" times={times} series={runs} height={182} format={formatDuration} sync="report" scaleKey={key} />
      </Card>
    </div>
  );
}
