import type { NextRun, ScheduleRun } from "../../api/types/schedules";
import { Card } from "../../components/Card";
import { hideTip, showTip } from "../../components/tip";
import { plural } from "../../format/numbers";
import { formatDay } from "../../format/times";
import { minuteTick } from "../../state/clock";
import { type DayCell, type DayKind, weeksOf } from "./weeks";

const DAY = 86_400_000;
const WORDS: Readonly<Record<DayKind, string>> = { good: "success", bad: "a run died", skipped: "left out", planned: "planned", none: "no run", unknown: "not known any more" };
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function textOf(cell: DayCell): string {
  // Days are counted on the schedule's clocks, so here they are read as if in UTC.
  const day = formatDay(cell.day * DAY, "UTC");
  if (cell.kind === "none" || cell.kind === "unknown") return `${day}: ${WORDS[cell.kind]}`;
  return `${day}: ${plural(cell.count, "run")}, ${WORDS[cell.kind]}`;
}

interface WeeksCardProps {
  runs: readonly ScheduleRun[];
  next: readonly NextRun[];
  zone: string;
}

/** Eight weeks at a glance. A schedule that runs all day long has nothing to show here. */
export function WeeksCard({ runs, next, zone }: WeeksCardProps) {
  const { weeks, isWorth } = weeksOf({ runs, next, mostRuns: 60, mostNext: 100, now: minuteTick.value, zone });
  if (!isWorth) return null;
  return (
    <Card title="Eight weeks" more="two of them ahead">
      <table class="weeks">
        <caption class="sr">What came of each day, and when it runs next</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="sr">Day</span>
            </th>
            {weeks.map((week) => (
              <th scope="col" key={week[0]?.day}>
                {formatDay((week[0]?.day ?? 0) * DAY, "UTC").slice(4)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {DAYS.map((name, at) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {weeks.map((week) => week[at] && <Cell key={week[at].day} cell={week[at]} />)}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="weeks-key">
        {(["good", "bad", "skipped", "planned"] as const).map((kind) => (
          <span class="key" key={kind}>
            <i class={`d-${kind}`} />
            {WORDS[kind]}
          </span>
        ))}
      </p>
    </Card>
  );
}

function Cell({ cell }: { cell: DayCell }) {
  const text = textOf(cell);
  return (
    <td class={cell.isToday ? "today" : undefined} onPointerEnter={(event) => showTip(event.currentTarget, text)} onPointerLeave={hideTip}>
      <i class={`d-${cell.kind}`} />
      <span class="sr">{text}</span>
    </td>
  );
}
