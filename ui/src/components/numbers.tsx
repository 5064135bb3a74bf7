import { formatDuration } from "../format/durations";
import { formatBounded, formatCount } from "../format/numbers";
import { Link } from "../router/Link";
import type { QueryValues } from "../router/location";

/** A duration in seconds. Nothing is a dash. */
export function Duration({ seconds }: { seconds: number | null | undefined }) {
  if (seconds === null || seconds === undefined) return <span class="dim">–</span>;
  return <span class="nw">{formatDuration(seconds)}</span>;
}

interface CountProps {
  value: number | null | undefined;
  /** It came from a bounded read: there may be more. */
  isBound?: boolean;
  /** The tasks behind the number: every number is a link. */
  to?: string;
  query?: QueryValues;
  /** Zero is quiet, so that the eye finds the others. */
  dimZero?: boolean;
}

/** A count, exact, with commas. */
export function Count({ value, isBound = false, to, query, dimZero = true }: CountProps) {
  if (value === null || value === undefined) return <span class="dim">–</span>;
  const text = isBound ? formatBounded(value, true) : formatCount(value);
  const body = value === 0 && dimZero ? <span class="dim">{text}</span> : <>{text}</>;
  return to === undefined ? body : <Link to={to} query={query}>{body}</Link>;
}
