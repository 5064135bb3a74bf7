import type uPlot from "uplot";
import type { Tone } from "../icons/StatusShape";

export type LineStyle = "solid" | "thin" | "dotted" | "faint";

export interface ChartSeries {
  label: string;
  /** One value a moment; null is a gap. */
  values: readonly (number | null)[];
  /** Lines differ by their dash, never by colour alone. */
  line?: LineStyle;
  /** Bars are for failures and other rare things; several stand on each other, the first at the bottom. */
  bars?: Tone;
  /** A light ground under the line. */
  area?: boolean;
}

export interface ChartMark {
  /** In milliseconds. */
  at: number;
  label: string;
}

export interface Look {
  ink: string;
  ink3: string;
  line: string;
  rest: string;
  fills: Record<Tone, string>;
}

/** The colours of the theme, for a canvas that cannot use variables itself. */
export function readLook(): Look {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: colour("--ink"),
    ink3: colour("--ink3"),
    line: colour("--line"),
    rest: colour("--rest-f"),
    fills: { rest: colour("--rest-f"), play: colour("--play-f"), heal: colour("--heal-f"), bad: colour("--bad-f"), good: colour("--good-f") },
  };
}

/** The next number that reads well: 1, 2, 2.5, 5, 10 times a power of ten. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= value * (1 - 1e-9)) ?? 10;
  return step * power;
}

/** The highest value drawn; bars stand on each other. */
export function highest(series: readonly ChartSeries[]): number {
  let most = 0;
  const length = series[0]?.values.length ?? 0;
  for (let at = 0; at < length; at += 1) {
    let pile = 0;
    for (const one of series) {
      const value = one.values[at] ?? 0;
      if (one.bars) pile += value;
      else most = Math.max(most, value);
    }
    most = Math.max(most, pile);
  }
  return most;
}

/** What is drawn, in the order of drawing: piled bars first, the highest pile first, then the lines. */
export function layers(series: readonly ChartSeries[]): { series: ChartSeries; values: (number | null)[] }[] {
  const bars = series.filter((one) => one.bars);
  const piled = bars.map((one, at) => ({
    series: one,
    values: one.values.map((_, moment) => bars.slice(0, at + 1).reduce((sum, below) => sum + (below.values[moment] ?? 0), 0)),
  }));
  const lines = series.filter((one) => !one.bars).map((one) => ({ series: one, values: [...one.values] }));
  return [...piled.reverse(), ...lines];
}

const WIDTHS: Readonly<Record<LineStyle, number>> = { solid: 1.5, thin: 1.25, dotted: 1.25, faint: 1.25 };

function strokeOf(style: LineStyle, look: Look): string {
  if (style === "solid") return look.ink;
  return style === "faint" ? look.rest : look.ink3;
}

export function seriesOptions(series: ChartSeries, paths: typeof uPlot.paths, look: () => Look): uPlot.Series {
  const { bars, line = "solid", area } = series;
  if (bars) {
    const colour = () => look().fills[bars];
    return { label: series.label, stroke: colour, fill: colour, width: 0, points: { show: false }, ...(paths.bars ? { paths: paths.bars({ size: [0.7, 24] }) } : {}) };
  }
  return {
    label: series.label,
    stroke: () => strokeOf(line, look()),
    width: WIDTHS[line],
    points: { show: false },
    ...(line === "dotted" ? { dash: [3, 3] } : {}),
    ...(area ? { fill: () => `${look().ink}0d` } : {}),
  };
}

/** The two hairlines of a chart, and a dotted one at each mark. */
export function drawFrame(plot: uPlot, look: Look, marks: readonly ChartMark[]): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.setLineDash([]);
  ctx.strokeStyle = look.line;
  for (const y of [bbox.top + ratio / 2, bbox.top + bbox.height - ratio / 2]) {
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.strokeStyle = look.ink3;
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.at / 1000, "x", true)) + ratio / 2;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
