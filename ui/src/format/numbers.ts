const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** 1204 -> "1,204". Never shortened to "1.2k". */
export function formatCount(value: number): string {
  return whole.format(value);
}

/** A count that came from a bounded read says so. */
export function formatBounded(value: number, isBound: boolean): string {
  return isBound ? `at least ${formatCount(value)}` : formatCount(value);
}

/** 28.83 -> "28.8", 0.0421 -> "0.042", 1790 -> "1,790": three figures, whole from a hundred on. */
export function formatFigure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  if (Math.abs(value) >= 99.95) return formatCount(value);
  const digits = Math.abs(value) >= 9.995 ? 1 : Math.abs(value) >= 0.995 ? 2 : 3;
  return trimZeros(value.toFixed(digits));
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

/** A rate a second, in the unit that reads best: "28.8/s", "7/min", "2/h". */
export function formatRate(perSecond: number): string {
  if (perSecond === 0) return "0/s";
  if (perSecond >= 1) return `${formatFigure(perSecond)}/s`;
  if (perSecond * 60 >= 1) return `${formatFigure(perSecond * 60)}/min`;
  return `${formatFigure(perSecond * 3600)}/h`;
}

/** A share from 0 to 1. Near the ends it keeps the digits that matter: 0.9996 -> "99.96 %". */
export function formatPercent(share: number): string {
  return `${percentFigure(share)} %`;
}

/** The number of `formatPercent` alone. A share just below one never reads "100". */
export function percentFigure(share: number): string {
  const percent = share * 100;
  if (percent === 0 || percent === 100) return String(percent);
  const fromEdge = Math.min(percent, 100 - percent);
  if (fromEdge < 0.01) return percent > 50 ? "above 99.99" : "below 0.01";
  const digits = fromEdge < 1 ? 2 : fromEdge < 10 ? 1 : 0;
  return trimZeros(percent.toFixed(digits));
}

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** 214 -> "214 B", 1258291 -> "1.3 MB". */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const text = unit === 0 || value >= 9.95 ? formatCount(value) : trimZeros(value.toFixed(1));
  return `${text} ${BYTE_UNITS[unit]}`;
}

/** "1 task", "412 tasks": the number and the right form of the word. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
