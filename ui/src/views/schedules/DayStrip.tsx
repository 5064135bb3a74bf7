import { useRef, useState } from "preact/hooks";
import type { Resource } from "../../api/resource";
import type { Calendar, CalendarSlot } from "../../api/types/schedules";
import { Card } from "../../components/Card";
import { hideTip, showTip } from "../../components/tip";
import { formatBounded, formatCount, plural } from "../../format/numbers";
import { clockParts, formatMinute } from "../../format/times";
import { minuteTick } from "../../state/clock";
import { prefs, zone } from "../../state/prefs";
import { plainText } from "../../text/split";
import { clockChangeText } from "./clocks";

const HALF_HOUR = 1_800_000;
const SLOTS = 48;

function slotsFrom(start: number, calendar: Calendar): CalendarSlot[] {
  const known = new Map(calendar.slots.map((slot) => [Date.parse(slot.at), slot]));
  return Array.from({ length: SLOTS }, (_, at) => known.get(start + at * HALF_HOUR) ?? { at: new Date(start + at * HALF_HOUR).toISOString(), count: 0, schedules: [] });
}

/** "Sun 02:00" on another day than now's, else "02:00". */
function slotText(at: number, now: number): string {
  const clock = clockParts(at, zone.value);
  const isToday = clock.day === clockParts(now, zone.value).day;
  return `${isToday ? "" : `${clock.weekday} `}${clock.hour}:${clock.minute}`;
}

function tipOf(slot: CalendarSlot, now: number): string {
  const at = Date.parse(slot.at);
  const names = slot.schedules.map(plainText).join(", ");
  return `${slotText(at, now)} to ${formatMinute(at + HALF_HOUR, zone.value)}: ${slot.count === 0 ? "no run" : `${plural(slot.count, "run")} of ${names}`}`;
}

function sentenceOf(calendar: Calendar, most: CalendarSlot | undefined, now: number): string {
  if (calendar.total === 0) return "No schedule runs in them.";
  const runs = `${formatBounded(calendar.total, calendar.at_least)} ${calendar.total === 1 ? "run" : "runs"}`;
  const pile = most ? `, at most ${formatCount(most.count)} in a half hour (${slotText(Date.parse(most.at), now)})` : "";
  return `${runs}${pile}. ${clockChangeText(now, now + SLOTS * HALF_HOUR, zone.value)}`;
}

/** What piles up in the next 24 hours, by half hours. Arrows move from bar to bar. */
export function DayStrip({ of }: { of: Resource<Calendar> }) {
  const now = minuteTick.value;
  const calendar = of.data.value ?? { slots: [], total: 0, at_least: false };
  const start = Math.floor(now / HALF_HOUR) * HALF_HOUR;
  const slots = slotsFrom(start, calendar);
  const top = Math.max(1, ...slots.map((slot) => slot.count));
  const most = slots.find((slot) => slot.count === top);
  // The first slot has begun already, so it says nothing about what is usual.
  const hasPeak = slots.slice(1).some((slot) => slot.count !== top);
  const sentence = sentenceOf(calendar, most, now);
  return (
    <Card of={of} class="day" title={<>The next 24 hours <span class="say">{of.data.value && sentence}</span></>} more={`${zone.value}${prefs.value.zone === "UTC" ? "" : ", your zone"}`}>
      <Bars slots={slots} top={top} peak={hasPeak ? most : undefined} now={now} label={`Runs in each half hour of the next 24 hours. ${sentence}`} />
      <Ticks slots={slots} now={now} />
    </Card>
  );
}

interface BarsProps {
  slots: readonly CalendarSlot[];
  top: number;
  peak: CalendarSlot | undefined;
  now: number;
  label: string;
}

function Bars({ slots, top, peak, now, label }: BarsProps) {
  const element = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState(-1);
  const tell = (at: number) => {
    const bar = element.current?.children[at];
    const slot = slots[at];
    if (bar && slot) showTip(bar, tipOf(slot, now));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.max(0, Math.min(slots.length - 1, cursor + step));
    setCursor(next);
    tell(next);
  };
  const leave = () => {
    setCursor(-1);
    hideTip();
  };
  return (
    <>
      <div class="bars" ref={element} tabIndex={0} role="group" aria-label={`${label} Left and right move by one bar.`} onKeyDown={onKeyDown} onBlur={leave} onPointerLeave={hideTip}>
        {slots.map((slot, at) => (
          <span key={slot.at} class={at === cursor ? "at" : undefined} onPointerEnter={() => tell(at)}>
            <i class={slot === peak ? "peak" : undefined} style={{ height: slot.count === 0 ? "0" : `${Math.max(4, (slot.count / top) * 100)}%` }} />
          </span>
        ))}
      </div>
      <span class="sr" role="status">
        {cursor >= 0 && slots[cursor] ? tipOf(slots[cursor], now) : ""}
      </span>
    </>
  );
}

/** A label at each third hour that the clocks show. */
function Ticks({ slots, now }: { slots: readonly CalendarSlot[]; now: number }) {
  return (
    <div class="ticks" aria-hidden="true">
      {slots.map((slot, at) => {
        const clock = clockParts(Date.parse(slot.at), zone.value);
        if (clock.minute !== "00" || Number(clock.hour) % 3 !== 0 || at > SLOTS - 2) return null;
        const text = clock.hour === "00" ? slotText(Date.parse(slot.at), now) : `${clock.hour}:00`;
        return (
          <span key={slot.at} class={Number(clock.hour) % 6 === 0 ? undefined : "no-phone"} style={{ left: `${(at / SLOTS) * 100}%` }}>
            {text}
          </span>
        );
      })}
    </div>
  );
}
