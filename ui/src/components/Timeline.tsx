import type { Status } from "../api/types";
import { formatDuration } from "../format/durations";
import { type Moment, toMillis } from "../format/times";
import { StatusShape, TONE_OF } from "../icons/StatusShape";
import { Text } from "../text/Text";
import { Duration } from "./numbers";
import { InTable, TimeAgo } from "./TimeAgo";
import { cutScale } from "./timelineScale";

export interface Phase {
  kind: "delay" | "queued" | "held" | "attempt" | "backoff";
  /** "attempt 2"; the kind itself if left out. */
  label?: string;
  from: Moment;
  /** In seconds; of the one that goes on, until now. */
  seconds: number;
  /** For an attempt: how it ended, or running. */
  status?: Status;
  /** The number of an attempt, for choosing it. */
  attempt?: number;
  reason?: string | null;
}

interface TimelineProps {
  phases: readonly Phase[];
  /** The attempt whose traceback shows below. */
  chosen?: number | null;
  onChoose?: (attempt: number) => void;
}

const SHAPE: Readonly<Record<Phase["kind"], Status>> = { delay: "pending", queued: "ready", held: "ready", attempt: "running", backoff: "retrying" };

function laneClass(phase: Phase): string {
  return phase.kind === "attempt" ? `a-${TONE_OF[phase.status ?? "running"]}` : phase.kind;
}

/** "Where the time went": one row a phase. A phase that takes nearly all is cut, so that the others can be seen. */
export function Timeline({ phases, chosen, onChoose }: TimelineProps) {
  const begin = phases[0] ? toMillis(phases[0].from) : 0;
  const scale = cutScale(phases.map((phase) => ({ from: (toMillis(phase.from) - begin) / 1000, seconds: phase.seconds })));
  return (
    <InTable.Provider value={true}>
      <div class="wf">
        <table>
          <caption class="sr">Where the time went</caption>
          <thead>
            <tr>
              <th class="w-what">What</th>
              <th class="w-from xp">From</th>
              <th class="w-took num">Took</th>
              <th class="w-lane xp" aria-hidden="true">
                <span class="ax">
                  <span>0 s</span>
                  <span>{formatDuration(scale.end / 2)}</span>
                  <span>
                    {formatDuration(scale.end)}
                    {scale.isCut && " ≫"}
                  </span>
                </span>
              </th>
              <th>Reason</th>
            </tr>
          </thead>
          <tbody>
            {phases.map((phase, at) => (
              <Row phase={phase} key={at} place={scale.places[at] ?? { left: 0, width: 0 }} isChosen={phase.attempt !== undefined && phase.attempt === chosen} onChoose={onChoose} />
            ))}
          </tbody>
        </table>
      </div>
    </InTable.Provider>
  );
}

interface RowProps {
  phase: Phase;
  place: { left: number; width: number };
  isChosen: boolean;
  onChoose: ((attempt: number) => void) | undefined;
}

function Row({ phase, place, isChosen, onChoose }: RowProps) {
  const { attempt, reason } = phase;
  const status = phase.status ?? SHAPE[phase.kind];
  const name = phase.label ?? (phase.kind === "attempt" ? `attempt ${attempt ?? ""}` : phase.kind);
  const choose = attempt !== undefined && onChoose ? () => onChoose(attempt) : undefined;
  return (
    <tr class={isChosen ? "cur" : undefined} onClick={choose}>
      <td>
        {choose ? (
          <button type="button" class="st what" aria-pressed={isChosen}>
            <StatusShape status={status} />
            {name}
          </button>
        ) : (
          <span class="st">
            <StatusShape status={status} />
            {name}
          </span>
        )}
      </td>
      <td class="mid xp">
        <TimeAgo at={phase.from} form="millis" />
      </td>
      <td class="num">
        <Duration seconds={phase.seconds} />
      </td>
      <td class="xp" aria-hidden="true">
        <span class="lane">
          <i class={laneClass(phase)} style={{ left: `min(${place.left}%, 100% - 2px)`, width: `${place.width}%` }} />
        </span>
      </td>
      <td class="cut mid" title={reason ?? undefined}>
        <Text>{reason}</Text>
      </td>
    </tr>
  );
}
