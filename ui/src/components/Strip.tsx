import { plural } from "../format/numbers";
import { formatDate, type Moment, toMillis } from "../format/times";
import { navigate } from "../router/location";
import { storeNow } from "../state/clock";
import { zone } from "../state/prefs";
import { hideTip, showTip } from "./tip";

/** How a run of a schedule ended. Height tells it too. */
export type RunOutcome = "success" | "retried" | "dead" | "skipped" | "running";

export interface Run {
  outcome: RunOutcome;
  at: Moment;
  /** The path of its task, if there is one: a shortcut for the pointer. The list of runs is the way for all. */
  to?: string;
  /** What the tip says of it, where the word of the outcome is not exact. */
  text?: string;
}

const WORDS: Readonly<Record<RunOutcome, string>> = { success: "success", retried: "success after a retry", dead: "dead", skipped: "skipped", running: "running" };

function describe(runs: readonly Run[]): string {
  const count = (outcome: RunOutcome) => runs.filter((run) => run.outcome === outcome).length;
  const parts = (Object.keys(WORDS) as RunOutcome[]).filter((outcome) => count(outcome) > 0).map((outcome) => `${count(outcome)} ${WORDS[outcome]}`);
  return `The last ${plural(runs.length, "run")}, newest right: ${parts.join(", ") || "none"}`;
}

/** The last runs of a schedule, newest right: success 9 px high, retried 14, dead 18, skipped 4. */
export function Strip({ runs }: { runs: readonly Run[] }) {
  const show = (run: Run) => (event: { currentTarget: Element }) => showTip(event.currentTarget, `${formatDate(toMillis(run.at), zone.value, storeNow())}: ${run.text ?? WORDS[run.outcome]}`);
  return (
    <span class="nw">
      <span class="sr">{describe(runs)}</span>
      <span class="runs" aria-hidden="true">
        {runs.map((run, at) => (
          <i
            key={at}
            class={run.to ? `${run.outcome} goes` : run.outcome}
            onClick={() => run.to && navigate(run.to)}
            onPointerEnter={show(run)}
            onPointerLeave={hideTip}
          />
        ))}
      </span>
    </span>
  );
}
