import { formatCount } from "../format/numbers";

interface SlotsProps {
  total: number;
  busy: number;
  /** Of the busy ones, those that run longer than their type's p99. */
  long?: number;
}

const MOST_CELLS = 100;

/** One cell a slot of a worker: amber ones run longer than their type usually does. */
export function Slots({ total, busy, long = 0 }: SlotsProps) {
  const cells = Math.min(total, MOST_CELLS);
  const share = total > cells ? cells / total : 1;
  const isLong = (at: number) => at < Math.ceil(long * share);
  const isBusy = (at: number) => at < Math.ceil(busy * share);
  const label = `${formatCount(busy)} of ${formatCount(total)} slots busy${long > 0 ? `, ${formatCount(long)} longer than p99` : ""}`;
  return (
    <span class="slots" role="img" aria-label={label}>
      {Array.from({ length: cells }, (_, at) => (
        <i key={at} class={isLong(at) ? "long" : isBusy(at) ? "busy" : undefined} />
      ))}
    </span>
  );
}
