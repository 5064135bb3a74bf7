import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** A run of rows to draw, or room for rows that are not drawn. */
export type Part = { from: number; to: number } | { gap: number; key: string };

const WINDOW_OVER = 200;
const MARGIN_ROWS = 20;

/** What of `count` rows to draw: those in the window, and the one with the focus wherever it is. */
export function partsOf(count: number, from: number, to: number, kept: number): Part[] {
  const ranges: { from: number; to: number }[] = [{ from, to }];
  if (kept >= 0 && kept < count && (kept < from || kept >= to)) ranges.push({ from: kept, to: kept + 1 });
  ranges.sort((one, other) => one.from - other.from);
  const parts: Part[] = [];
  let at = 0;
  for (const range of ranges) {
    if (range.from > at) parts.push({ gap: range.from - at, key: `gap ${at === 0 ? "first" : "middle"}` });
    parts.push(range);
    at = range.to;
  }
  if (at < count) parts.push({ gap: count - at, key: "gap last" });
  return parts;
}

/** Which rows are near what is visible. Short tables are drawn whole. */
export function useWindow(count: number, kept: number) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [range, setRange] = useState({ from: 0, to: Math.min(count, 60) });
  const rowHeight = useRef(32);
  const isWindowed = count > WINDOW_OVER;

  const measure = () => {
    const element = body.current;
    if (!element || !isWindowed) return;
    const row = element.querySelector<HTMLElement>("tr[data-row]");
    if (row && row.offsetHeight > 0) rowHeight.current = row.getBoundingClientRect().height;
    const top = -element.getBoundingClientRect().top;
    const first = Math.floor(top / rowHeight.current) - MARGIN_ROWS;
    const last = Math.ceil((top + innerHeight) / rowHeight.current) + MARGIN_ROWS;
    // Far from the table some rows are drawn all the same: it is never empty for those who do not see it.
    const from = Math.max(0, Math.min(first, count - MARGIN_ROWS));
    const to = Math.min(count, Math.max(last, from + MARGIN_ROWS));
    setRange((now) => (now.from === from && now.to === to ? now : { from, to }));
  };
  useLayoutEffect(measure, [count, isWindowed]);
  useEffect(() => {
    if (!isWindowed) return;
    let frame = 0;
    const onScroll = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(measure);
    };
    addEventListener("scroll", onScroll, { passive: true });
    addEventListener("resize", onScroll);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", onScroll);
      removeEventListener("resize", onScroll);
    };
  }, [count, isWindowed]);

  const parts: Part[] = isWindowed ? partsOf(count, Math.min(range.from, count), Math.min(range.to, count), kept) : [{ from: 0, to: count }];
  return { body, parts, rowHeight: rowHeight.current };
}
