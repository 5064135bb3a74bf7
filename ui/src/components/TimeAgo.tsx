import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { formatAge, formatClock, formatClockMillis, formatDate, formatExact, formatNear, formatRelative, type Moment, toMillis } from "../format/times";
import { nowFor, storeNow } from "../state/clock";
import { zone } from "../state/prefs";
import { hideTip, showTip } from "./tip";

/** Inside a table a time is no stop for the Tab key: hundreds of them would be in the way. */
export const InTable = createContext(false);

type Form = "relative" | "age" | "clock" | "millis" | "date" | "near";

interface TimeAgoProps {
  at: Moment | null | undefined;
  /**
   * relative "6 min ago" · age "6 min" · clock "03:12:40" · millis "03:12:40.123" · date "Sun 25 Oct 02:00" ·
   * near "03:12" or "12 Oct", whichever places it.
   */
  form?: Form;
  /** Another zone than the page's, for the times of a schedule. */
  inZone?: string;
}

function textOf(at: number, form: Form, where: string): string {
  if (form === "clock") return formatClock(at, where);
  if (form === "millis") return formatClockMillis(at, where);
  if (form === "date") return formatDate(at, where, storeNow());
  if (form === "near") return formatNear(at, storeNow(), where);
  return form === "age" ? formatAge(at, nowFor(at), where) : formatRelative(at, nowFor(at), where);
}

/** A moment. The exact time, with its zone and in UTC, shows on hover and on focus. */
export function TimeAgo({ at, form = "relative", inZone }: TimeAgoProps) {
  const inTable = useContext(InTable);
  const millis = at === null || at === undefined ? Number.NaN : toMillis(at);
  if (!Number.isFinite(millis)) return <span class="dim">–</span>;
  const where = inZone ?? zone.value;
  const show = (event: { currentTarget: Element }) => showTip(event.currentTarget, formatExact(millis, where));
  return (
    <time
      dateTime={new Date(millis).toISOString()}
      class={form === "millis" ? "mono" : undefined}
      tabIndex={inTable ? undefined : 0}
      onPointerEnter={show}
      onPointerLeave={hideTip}
      onFocus={show}
      onBlur={hideTip}
    >
      {textOf(millis, form, where)}
    </time>
  );
}

/** How long something takes that began at `since`, and goes on. */
export function Elapsed({ since }: { since: Moment }) {
  const at = toMillis(since);
  return <span class="nw">{formatAge(at, nowFor(at), zone.value)}</span>;
}
