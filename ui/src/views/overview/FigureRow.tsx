import type { Overview } from "../../api/types/overview";
import type { Percentiles } from "../../api/types/reports";
import { Figure, Figures } from "../../components/Figure";
import { Sparkline } from "../../components/Sparkline";
import { durationMeasure, formatDuration } from "../../format/durations";
import { formatCount, formatRate, percentFigure, plural } from "../../format/numbers";
import { tokenText } from "../../filter/tokens";
import type { Range } from "../../state/prefs";
import { Text } from "../../text/Text";
import { openOf, stoppedOf } from "../queues/state";
import { samples } from "./samples";
import { type Drawn, latest, type Sums } from "./series";

interface FigureRowProps {
  overview: Overview;
  drawn: Drawn;
  sums: Sums;
  range: Range;
}

export const RANGE_WORDS: Readonly<Record<Range, string>> = { "1h": "last hour", "24h": "last 24 hours", "7d": "last 7 days" };

function splitRate(perSecond: number): { figure: string; unit: string } {
  const text = formatRate(perSecond);
  const slash = text.indexOf("/");
  return { figure: text.slice(0, slash), unit: text.slice(slash) };
}

/** The six numbers that say how it goes. */
export function FigureRow({ overview, drawn, sums, range }: FigureRowProps) {
  return (
    <Figures label="Figures">
      <Done overview={overview} drawn={drawn} />
      <Success drawn={drawn} sums={sums} range={range} />
      <Oldest overview={overview} />
      <Times title="Wait, p95" name="wait" values={drawn.wait} times={drawn.times} />
      <Times title="Run, p95" name="run" values={drawn.run} times={drawn.times} />
      <Busy overview={overview} />
    </Figures>
  );
}

function Done({ overview, drawn }: { overview: Overview; drawn: Drawn }) {
  const out = overview.queues.reduce((sum, queue) => sum + queue.out_rate, 0) / 60;
  const come = overview.queues.reduce((sum, queue) => sum + queue.in_rate, 0) / 60;
  const { figure, unit } = splitRate(out);
  return (
    <Figure title="Done" value={figure} unit={unit} sub={`${formatRate(come)} come in`} to="tasks" query={{ q: "status:success" }}>
      <Sparkline kind="area" values={drawn.done} times={drawn.times} label="Done a minute" />
    </Figure>
  );
}

function Success({ drawn, sums, range }: { drawn: Drawn; sums: Sums; range: Range }) {
  const ended = sums.success + sums.failed;
  const sub = ended === 0 ? "nothing has ended" : `${formatCount(sums.failed)} of ${formatCount(ended)} failed`;
  return (
    <Figure title={`Success, ${RANGE_WORDS[range]}`} value={ended === 0 ? "–" : percentFigure(sums.success / ended)} unit={ended === 0 ? "" : "%"} sub={sub} to="failures">
      <Sparkline values={drawn.success} times={drawn.times} max={1} label="Share that ended well" format={(share) => `${percentFigure(share)} %`} />
    </Figure>
  );
}

function Oldest({ overview }: { overview: Overview }) {
  const open = overview.queues.filter((queue) => openOf(queue) > 0 && queue.latency !== null);
  const oldest = open.toSorted((one, other) => (other.latency ?? 0) - (one.latency ?? 0))[0];
  // Those at limits, breakers and switches are not ready meanwhile.
  const held = overview.queues.reduce((sum, queue) => sum + stoppedOf(queue), overview.held);
  const measure = oldest ? durationMeasure(oldest.latency ?? 0) : { figure: "0", unit: "s" };
  const seen = samples();
  const heldText = `${formatCount(held)} ${held === 1 ? "is" : "are"} held`;
  return (
    <Figure
      title="Oldest ready, not held"
      value={measure.figure}
      unit={measure.unit}
      sub={oldest ? <><Text>{oldest.name}</Text>{held > 0 && `; ${heldText}`}</> : held > 0 ? `nothing waits; ${heldText}` : "nothing waits"}
      to="tasks"
      query={{ q: oldest ? `status:ready ${tokenText("queue", [oldest.name])}` : "status:ready" }}
    >
      <Sparkline kind="area" values={seen.map((sample) => sample.oldest)} times={seen.map((sample) => sample.at)} label="Oldest ready, since this page was opened" format={formatDuration} />
    </Figure>
  );
}

interface TimesProps {
  title: string;
  name: "wait" | "run";
  values: readonly (Percentiles | null)[];
  times: readonly number[];
}

function Times({ title, name, values, times }: TimesProps) {
  const now = latest(values);
  const measure = now ? durationMeasure(now.p95) : { figure: "–", unit: "" };
  return (
    <Figure
      title={title}
      value={measure.figure}
      unit={measure.unit}
      sub={now ? `p50 ${formatDuration(now.p50)} · p99 ${formatDuration(now.p99)}` : "nothing has started"}
      to="tasks"
      query={{ q: now ? `status:success ${name}>${now.p95.toFixed(3)}s` : "status:success" }}
    >
      <Sparkline values={values.map((one) => one?.p95 ?? null)} times={times} label={title} format={formatDuration} />
    </Figure>
  );
}

function Busy({ overview }: { overview: Overview }) {
  const { busy, slots, workers } = overview.status;
  const seen = samples();
  const lost = overview.lost > 0 ? `, ${formatCount(overview.lost)} lost` : "";
  return (
    <Figure title="Slots busy" value={formatCount(busy)} unit={`of ${formatCount(slots)}`} sub={workers === 0 ? `no worker is up${lost}` : `${plural(workers, "worker")}${lost}`} to="workers">
      <Sparkline kind="area" values={seen.map((sample) => sample.busy)} times={seen.map((sample) => sample.at)} max={slots} label="Slots busy, since this page was opened" />
    </Figure>
  );
}
