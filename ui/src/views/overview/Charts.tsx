import { useMemo } from "preact/hooks";
import type { Percentiles } from "../../api/types/reports";
import { Card } from "../../components/Card";
import { Chart, type ChartMark, type ChartSeries } from "../../components/Chart";
import { Legend } from "../../components/marks";
import { formatDuration } from "../../format/durations";
import { navigate } from "../../router/location";
import type { Drawn } from "./series";

interface ChartsProps {
  drawn: Drawn;
  /** The scales start anew when it changes: range, and what is shown. */
  scaleKey: string;
  marks?: readonly ChartMark[];
  /** Narrows the tasks of a moment that was clicked: "queue:media". */
  filter?: string;
}

const NO_MARKS: readonly ChartMark[] = [];

/** Opens the tasks that were submitted in a span. */
function openSpan(from: number, to: number, filter: string): void {
  const text = (at: number) => new Date(at).toISOString().replace(".000Z", "Z");
  navigate("tasks", { q: `${filter} submitted>=${text(from)} submitted<${text(to)}`.trim() });
}

/** How many are done, and below on a scale of their own those that failed. */
export function Throughput({ drawn, scaleKey, marks = NO_MARKS, filter = "" }: ChartsProps) {
  const amounts = useMemo<ChartSeries[]>(
    () => [
      { label: "done", values: drawn.done, area: true },
      { label: "submitted", values: drawn.submitted, line: "dotted" },
    ],
    [drawn],
  );
  const failures = useMemo<ChartSeries[]>(
    () => [
      { label: "died", values: drawn.died, bars: "bad" },
      { label: "retried", values: drawn.retried, bars: "heal" },
    ],
    [drawn],
  );
  const pick = (from: number, to: number) => openSpan(from, to, filter);
  const unit = drawn.grain === "minute" ? "failed attempts" : `failed attempts ${drawn.grain === "hour" ? "an hour" : "a day"}`;
  return (
    <Card
      title="Tasks a minute"
      more={<Legend entries={[{ label: "done", line: "solid" }, { label: "submitted", line: "dotted" }, { label: "retried", tone: "heal" }, { label: "died", tone: "bad" }]} />}
    >
      <Chart label="Tasks a minute" times={drawn.times} series={amounts} sync="overview" marks={marks} scaleKey={scaleKey} onPick={pick} hideTimes />
      <Chart label="Failed attempts" times={drawn.times} series={failures} height={56} sync="overview" unit={unit} scaleKey={scaleKey} onPick={pick} />
    </Card>
  );
}

function percentileSeries(values: readonly (Percentiles | null)[]): ChartSeries[] {
  return [
    { label: "p50", values: values.map((one) => one?.p50 ?? null) },
    { label: "p95", values: values.map((one) => one?.p95 ?? null), line: "thin" },
    { label: "p99", values: values.map((one) => one?.p99 ?? null), line: "dotted" },
  ];
}

/** How long tasks wait and run. */
export function WaitAndRun({ drawn, scaleKey, marks = NO_MARKS, filter = "" }: ChartsProps) {
  const waits = useMemo(() => percentileSeries(drawn.wait), [drawn]);
  const runs = useMemo(() => percentileSeries(drawn.run), [drawn]);
  const pick = (from: number, to: number) => openSpan(from, to, filter);
  const shared = { times: drawn.times, height: 80, sync: "overview", scaleKey, format: formatDuration, onPick: pick };
  return (
    <Card title="Wait and run" more={<Legend entries={[{ label: "p50", line: "solid" }, { label: "p95", line: "thin" }, { label: "p99", line: "dotted" }]} />}>
      <Chart label="Wait" series={waits} unit="wait" marks={marks} hideTimes {...shared} />
      <Chart label="Run" series={runs} unit="run" {...shared} />
    </Card>
  );
}
