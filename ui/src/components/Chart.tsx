import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { formatFigure } from "../format/numbers";
import { formatMinute } from "../format/times";
import { theme, zone } from "../state/prefs";
import { type ChartMark, type ChartSeries, drawFrame, highest, layers, readLook, roundUp, seriesOptions } from "./chartOptions";
import { TimeScale } from "./HistogramStrip";

export type { ChartMark, ChartSeries } from "./chartOptions";

interface ChartProps {
  /** What it shows, for readers. */
  label: string;
  /** The moments, in milliseconds, the same for all series. */
  times: readonly number[];
  /** Failures never share a scale with successes: give them a chart of their own below. */
  series: readonly ChartSeries[];
  height?: number;
  format?: (value: number) => string;
  /** Stands behind the number at the top: "failed attempts". */
  unit?: string;
  /** Charts with the same word share one crosshair. */
  sync?: string;
  /** Where a version first appears. */
  marks?: readonly ChartMark[];
  /** The scale only grows while this stays the same: give the range. */
  scaleKey?: string;
  /** A click or Enter at a moment: from it to the next. */
  onPick?: (from: number, to: number) => void;
  /** Leaves out the labels of time, for the upper of two charts. */
  hideTimes?: boolean;
}

type Plotter = typeof uPlot;
let plotter: Promise<Plotter> | null = null;

/** The library is fetched with the first chart. */
function loadPlotter(): Promise<Plotter> {
  plotter ??= import("uplot").then((module) => module.default);
  return plotter;
}

function dataOf(times: readonly number[], series: readonly ChartSeries[]): uPlot.AlignedData {
  return [times.map((time) => time / 1000), ...layers(series).map((layer) => layer.values)] as uPlot.AlignedData;
}

function summaryOf({ label, series, format = formatFigure }: ChartProps): string {
  const parts = series.map((one) => {
    const known = one.values.filter((value) => value !== null);
    return known.length === 0 ? `${one.label}: nothing` : `${one.label}: least ${format(Math.min(...known))}, most ${format(Math.max(...known))}, now ${format(known.at(-1) ?? 0)}`;
  });
  return `${label}. ${parts.join(". ")}.`;
}

/** A chart of amounts over time. */
export function Chart(props: ChartProps) {
  const { times, series, height = 104, format = formatFigure, sync, marks = [], scaleKey = "", onPick } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const last = useRef(props);
  last.current = props;
  const [at, setAt] = useState<number | null>(null);
  const scale = useRef({ key: "", top: 0 });
  if (scale.current.key !== scaleKey) scale.current = { key: scaleKey, top: 0 };
  scale.current.top = Math.max(scale.current.top, roundUp(highest(series)));
  const top = scale.current.top;
  const shape = series.map((one) => `${one.label} ${one.line} ${one.bars} ${one.area}`).join("|");

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    let isGone = false;
    const cleanUps: (() => void)[] = [];
    void loadPlotter().then((Plot) => {
      if (isGone) return;
      let look = readLook();
      const made = new Plot(
        {
          width: element.clientWidth,
          height,
          legend: { show: false },
          padding: [0, 0, 0, 0],
          cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false }, ...(sync ? { sync: { key: sync } } : {}) },
          scales: { x: { time: true }, y: { range: () => [0, scale.current.top] } },
          axes: [{ show: false }, { show: false }],
          series: [{}, ...layers(last.current.series).map((layer) => seriesOptions(layer.series, Plot.paths, () => look))],
          hooks: {
            drawAxes: [(drawn) => drawFrame(drawn, look, last.current.marks ?? [])],
            setCursor: [(moved) => setAt(moved.cursor.idx ?? null)],
          },
        },
        dataOf(last.current.times, last.current.series),
        element,
      );
      plot.current = made;
      const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
      watch.observe(element);
      const stop = effect(() => {
        void theme.value;
        look = readLook();
        made.redraw(false);
      });
      cleanUps.push(() => watch.disconnect(), stop, () => made.destroy());
    });
    return () => {
      isGone = true;
      plot.current = null;
      for (const cleanUp of cleanUps) cleanUp();
    };
  }, [shape, height, sync]);

  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series, top]);

  const pick = (index: number | null) => {
    const from = index === null ? undefined : times[index];
    if (from === undefined || index === null || !onPick) return;
    onPick(from, times[index + 1] ?? from + ((times[1] ?? 0) - (times[0] ?? 0)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") return pick(at);
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (step === 0 || !plot.current) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(times.length - 1, (at ?? times.length) + step));
    plot.current.setCursor({ left: plot.current.valToPos((times[next] ?? 0) / 1000, "x"), top: 1 });
  };
  const from = times[0] ?? 0;
  const to = times.at(-1) ?? 1;
  return (
    <>
      <div class="chart" style={{ height: `${height}px` }}>
        <div class="plot" ref={host} role="img" aria-label={summaryOf(props)} tabIndex={0} onKeyDown={onKeyDown} onClick={() => pick(at)} style={{ height: `${height}px`, cursor: onPick ? "pointer" : undefined }} />
        <span class="yl">
          {format(top)}
          {props.unit ? ` ${props.unit}` : ""}
        </span>
        {marks
          .filter((mark) => mark.at >= from && mark.at <= to)
          .map((mark) => (
            <span class={props.hideTimes ? "mkl below" : "mkl"} key={mark.at} style={{ left: `${((mark.at - from) / (to - from)) * 100}%` }}>
              {mark.label}
            </span>
          ))}
        {at !== null && times[at] !== undefined && (
          <span class="read" aria-live="off">
            <b>{formatMinute(times[at], zone.value)}</b>
            {series.map((one) => (
              <span key={one.label}>
                {one.label} {formatValue(one.values[at], format)}
              </span>
            ))}
          </span>
        )}
      </div>
      {!props.hideTimes && <TimeScale from={from} to={to} />}
    </>
  );
}

function formatValue(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}
