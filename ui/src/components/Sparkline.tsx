import { formatFigure } from "../format/numbers";
import { formatMinute, type Moment, toMillis } from "../format/times";
import type { Tone } from "../icons/StatusShape";
import { zone } from "../state/prefs";
import { hideTip, showTip } from "./tip";

interface SparklineProps {
  /** Up to 60 points, oldest first; null is a gap. */
  values: readonly (number | null)[];
  /** What it shows, for readers: "Done a minute, last hour". */
  label: string;
  /** The moment of each point, for the tip. */
  times?: readonly Moment[];
  /** The top of the scale; those that are compared must have the same. */
  max?: number;
  /** Bars for counts of rare things, a line for amounts. */
  kind?: "line" | "area" | "bars";
  tone?: Tone;
  format?: (value: number) => string;
}

const WIDTH = 100;
const HEIGHT = 24;

/** Several strokes where values are missing, so that a gap is seen as one. */
function linePath(values: readonly (number | null)[], top: number): string {
  const step = values.length > 1 ? WIDTH / (values.length - 1) : WIDTH;
  let path = "";
  let isDown = false;
  for (const [at, value] of values.entries()) {
    if (value === null) {
      isDown = false;
      continue;
    }
    path += `${isDown ? "L" : "M"}${(at * step).toFixed(2)} ${yOf(value, top)}`;
    isDown = true;
  }
  return path;
}

function yOf(value: number, top: number): string {
  return (HEIGHT - 1 - (Math.min(value, top) / top) * (HEIGHT - 2)).toFixed(2);
}

function summary(label: string, known: readonly number[], format: (value: number) => string): string {
  if (known.length === 0) return `${label}: nothing yet`;
  const now = known.at(-1) ?? 0;
  return `${label}: least ${format(Math.min(...known))}, most ${format(Math.max(...known))}, now ${format(now)}`;
}

/** A small chart without axes, in a row or under a number. */
export function Sparkline({ values, label, times, max, kind = "line", tone = "bad", format = formatFigure }: SparklineProps) {
  const known = values.filter((value) => value !== null);
  const top = Math.max(max ?? 0, ...known, 1e-9);
  const show = (event: PointerEvent) => {
    const element = event.currentTarget as Element;
    const box = element.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const at = Math.max(0, Math.min(values.length - 1, kind === "bars" ? Math.floor(share * values.length) : Math.round(share * (values.length - 1))));
    const value = values[at];
    if (value === null || value === undefined) return hideTip();
    const time = times?.[at];
    showTip(element, time === undefined ? format(value) : `${format(value)} at ${formatMinute(toMillis(time), zone.value)}`, event.clientX);
  };
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary(label, known, format)} onPointerMove={show} onPointerLeave={hideTip}>
      {kind === "bars" ? (
        <Bars values={values} top={top} tone={tone} />
      ) : (
        <>
          {kind === "area" && values.length > 1 && <path class="spark-area" d={`${linePath(values.map((value) => value ?? 0), top)}V${HEIGHT}H0Z`} />}
          <path class="spark-line" d={linePath(values, top)} />
        </>
      )}
    </svg>
  );
}

function Bars({ values, top, tone }: { values: readonly (number | null)[]; top: number; tone: Tone }) {
  const step = WIDTH / values.length;
  return (
    <>
      {values.map((value, at) => {
        if (!value) return null;
        // One of many is still one: it must be seen.
        const height = Math.max(2, (value / top) * HEIGHT);
        return <rect class={`v-${tone}`} key={at} x={at * step + step * 0.15} y={HEIGHT - height} width={step * 0.7} height={height} />;
      })}
    </>
  );
}
