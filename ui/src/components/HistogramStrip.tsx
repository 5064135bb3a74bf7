import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { formatCount } from "../format/numbers";
import { formatMinute, formatNear } from "../format/times";
import type { Tone } from "../icons/StatusShape";
import { storeNow } from "../state/clock";
import { zone } from "../state/prefs";
import { Legend } from "./marks";
import { hideTip, showTip } from "./tip";

export interface HistogramPart {
  label: string;
  tone: Tone | "quiet";
  /** One count a bar. */
  values: readonly number[];
}

interface HistogramStripProps {
  /** When each bar begins, in milliseconds; all are equally long. */
  starts: readonly number[];
  /** How long a bar is, in milliseconds. */
  width: number;
  /** Drawn from the bottom up: what needs a look first. */
  parts: readonly HistogramPart[];
  label: string;
  /** Above it, left: the sum in words. */
  children?: ComponentChildren;
  /** The reader dragged over a stretch, or chose a bar by keyboard. */
  onPick?: (from: number, to: number) => void;
}

/** Tasks over time by their status now. Dragging chooses a stretch, Esc drops it; arrows move a cursor by one bar. */
export function HistogramStrip({ starts, width, parts, label, children, onPick }: HistogramStripProps) {
  const element = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const sums = starts.map((_, at) => parts.reduce((sum, part) => sum + (part.values[at] ?? 0), 0));
  const top = Math.max(1, ...sums);

  const barAt = (clientX: number) => {
    const box = element.current?.getBoundingClientRect();
    if (!box) return 0;
    return Math.max(0, Math.min(starts.length - 1, Math.floor(((clientX - box.left) / box.width) * starts.length)));
  };
  const tell = (at: number) => {
    const text = parts
      .filter((part) => part.values[at])
      .map((part) => `${formatCount(part.values[at] ?? 0)} ${part.label}`)
      .join(", ");
    const box = element.current?.getBoundingClientRect();
    if (element.current && box) showTip(element.current, `${formatMinute(starts[at] ?? 0, zone.value)}: ${text || "none"}`, box.left + ((at + 0.5) / starts.length) * box.width);
  };
  const pick = (from: number, to: number) => onPick?.(starts[Math.min(from, to)] ?? 0, (starts[Math.max(from, to)] ?? 0) + width);
  const onKeyDown = (event: KeyboardEvent) => {
    const at = cursor ?? starts.length;
    if (event.key === "Escape") {
      setCursor(null);
      setDrag(null);
      hideTip();
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const next = Math.max(0, Math.min(starts.length - 1, at + (event.key === "ArrowLeft" ? -1 : 1)));
      setCursor(next);
      tell(next);
    } else if (event.key === "Enter" && cursor !== null) pick(cursor, cursor);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onPointerDown = (event: PointerEvent) => {
    if (!onPick || event.button !== 0) return;
    element.current?.setPointerCapture(event.pointerId);
    setDrag({ from: barAt(event.clientX), to: barAt(event.clientX) });
  };
  const onPointerMove = (event: PointerEvent) => {
    const at = barAt(event.clientX);
    tell(at);
    if (drag) setDrag({ ...drag, to: at });
  };
  const onPointerUp = () => {
    if (drag) pick(drag.from, drag.to);
    setDrag(null);
  };
  return (
    <div class="hist">
      <div class="hh">
        <span>{children}</span>
        <span class="sp" />
        <Legend entries={parts.map((part) => ({ label: part.label, tone: part.tone })).reverse()} />
      </div>
      <div
        class="bars"
        ref={element}
        tabIndex={0}
        role="group"
        aria-label={`${label}. ${formatCount(sums.reduce((sum, value) => sum + value, 0))} in all. Left and right move by one bar${onPick ? ", Enter chooses it" : ""}.`}
        onKeyDown={onKeyDown}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerLeave={hideTip}
        onBlur={() => {
          setCursor(null);
          hideTip();
        }}
      >
        <Stack parts={parts} count={starts.length} top={top} />
        {drag && <Stretch from={Math.min(drag.from, drag.to)} to={Math.max(drag.from, drag.to) + 1} of={starts.length} />}
        {cursor !== null && <span class="at" style={{ left: `${((cursor + 0.5) / starts.length) * 100}%` }} />}
      </div>
      <TimeScale from={starts[0] ?? 0} to={(starts.at(-1) ?? 0) + width} />
    </div>
  );
}

function Stack({ parts, count, top }: { parts: readonly HistogramPart[]; count: number; top: number }) {
  const bars = [];
  for (let at = 0; at < count; at += 1) {
    let from = 36;
    for (const part of parts) {
      const value = part.values[at] ?? 0;
      if (value === 0) continue;
      const height = Math.max(0.75, (value / top) * 36);
      from -= height;
      bars.push(<rect class={`v-${part.tone}`} key={`${at} ${part.label}`} x={at + 0.08} y={from} width={0.84} height={height} />);
    }
  }
  return (
    <svg viewBox={`0 0 ${Math.max(1, count)} 36`} preserveAspectRatio="none" aria-hidden="true">
      {bars}
    </svg>
  );
}

function Stretch({ from, to, of }: { from: number; to: number; of: number }) {
  return <span class="pick" style={{ left: `${(from / of) * 100}%`, width: `${((to - from) / of) * 100}%` }} />;
}

/** The labels under a chart: six moments, on a phone the first and the last. */
export function TimeScale({ from, to, labels = 6 }: { from: number; to: number; labels?: number }) {
  const isLong = to - from > 86_400_000;
  const at = (step: number) => from + ((to - from) * step) / (labels - 1);
  return (
    <div class="xl" aria-hidden="true">
      {Array.from({ length: labels }, (_, step) => (
        <span key={step}>{isLong ? formatNear(at(step), storeNow(), zone.value) : formatMinute(at(step), zone.value)}</span>
      ))}
    </div>
  );
}
