import type { LinePreview } from "../../api/types/schedules";
import { Card } from "../../components/Card";
import { formatBounded, formatCount, plural } from "../../format/numbers";
import { minuteTick } from "../../state/clock";
import { Text } from "../../text/Text";
import { type Difference, LABELS } from "./form";
import { NextRuns } from "./NextRuns";
import { runsADay } from "./preview";

const SHOWN = 10;

/** What the line means, while it is typed. */
export function PreviewCard({ preview, isEmpty }: { preview: LinePreview | null; isEmpty: boolean }) {
  const isGood = preview !== null && preview.problem === null;
  return (
    <Card title="Preview" more={isGood && preview.runs.length > 0 && dayText(preview)}>
      <div aria-live="polite">
        {isEmpty && <p class="say-line mid">Without a cron line it runs only when triggered.</p>}
        {preview?.problem && <p class="say-line mid">The line cannot be read yet.</p>}
        {isGood && (
          <p class="say-line">
            <b>
              <Text>{preview.description}</Text>
            </b>
            , <Text>{preview.timezone}</Text> time
          </p>
        )}
      </div>
      {isGood && preview.runs.length === 0 && <p class="say-line c-bad">This never comes.</p>}
      {isGood && preview.runs.length > 0 && <NextRuns runs={preview.runs.slice(0, SHOWN)} timezone={preview.timezone} />}
    </Card>
  );
}

function dayText(preview: LinePreview): string {
  const { count, isBound } = runsADay(preview, minuteTick.value);
  return `${formatBounded(count, isBound)} ${count === 1 ? "run" : "runs"} in the next 24 hours`;
}

interface DifferenceProps {
  changed: readonly Difference[];
  before: LinePreview | null;
  after: LinePreview | null;
}

/** Each field that differs, before and after, and what that does to the number of runs. */
export function DifferenceList({ changed, before, after }: DifferenceProps) {
  const runs = runsText(before, after);
  return (
    <>
      <dl class="diff">
        {changed.map((one) => (
          <div key={one.name}>
            <dt>{LABELS[one.name]}</dt>
            <dd class="was">
              <span class="sr">before: </span>
              {one.before.trim() ? <Text>{one.before}</Text> : <i>none</i>}
            </dd>
            <dd class="is">
              <span class="sr">after: </span>
              {one.after.trim() ? <Text>{one.after}</Text> : <i>none</i>}
            </dd>
          </div>
        ))}
      </dl>
      {runs && <p class="diff-runs">{runs}</p>}
    </>
  );
}

/** "2 runs a day fewer", if that is known and true. */
function runsText(before: LinePreview | null, after: LinePreview | null): string {
  if (after?.problem) return "";
  const old = runsADay(before, minuteTick.value);
  const now = runsADay(after, minuteTick.value);
  if (old.isBound && now.isBound) return "";
  if (old.isBound || now.isBound) return now.isBound ? `At least ${formatCount(now.count)} runs in the next 24 hours, instead of ${formatCount(old.count)}.` : `${plural(now.count, "run")} in the next 24 hours, instead of at least ${formatCount(old.count)}.`;
  if (old.count === now.count) return "";
  const more = now.count - old.count;
  return `${plural(Math.abs(more), "run")} ${more > 0 ? "more" : "fewer"} in the next 24 hours: ${formatCount(now.count)} instead of ${formatCount(old.count)}.`;
}
