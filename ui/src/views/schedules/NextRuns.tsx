import type { NextRun } from "../../api/types/schedules";
import { formatSpan } from "../../format/durations";
import { clockParts, formatDate, formatMinute, zoneAbbreviation } from "../../format/times";
import { Icon } from "../../icons/Icon";
import { minuteTick, nowFor } from "../../state/clock";
import { zone } from "../../state/prefs";
import { Text } from "../../text/Text";

/** Seconds are told only where a schedule uses them. */
function ownTime(at: number, own: string, withSeconds: boolean): string {
  const seconds = withSeconds ? `:${clockParts(at, own).second}` : "";
  return `${formatDate(at, own, minuteTick.value)}${seconds} ${zoneAbbreviation(at, own)}`;
}

interface NextRunsProps {
  runs: readonly NextRun[];
  timezone: string;
}

/** The next runs, as the schedule's clocks and the reader's show them, with what the clocks do then. */
export function NextRuns({ runs, timezone }: NextRunsProps) {
  const isOther = timezone !== zone.value;
  const withSeconds = runs.some((run) => Date.parse(run.at) % 60_000 !== 0);
  return (
    <ol class="next-runs">
      {runs.map((run) => {
        const at = Date.parse(run.at);
        return (
          <li key={run.at}>
            <span class="nw">{ownTime(at, timezone, withSeconds)}</span>
            {isOther && <span class="dim nw">{formatMinute(at, zone.value)} yours</span>}
            <span class="dim nw ago">in {formatSpan((at - nowFor(at)) / 1000)}</span>
            {run.mark && (
              <span class="mark c-heal">
                <Icon name="dst" />
                <Text>{run.mark}</Text>
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
}
