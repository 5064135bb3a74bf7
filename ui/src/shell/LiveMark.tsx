import { formatClock, zoneAbbreviation } from "../format/times";
import { isPaused, lastFrameAt, type LiveState, liveState, setPaused } from "../live/stream";
import { secondTick } from "../state/clock";
import { zone } from "../state/prefs";
import { hideTip, showTip } from "../components/tip";

const TIPS: Readonly<Record<LiveState, string>> = {
  connecting: "The stream is being opened.",
  live: "What you see follows the store. Press p to pause.",
  paused: "Nothing changes until you go on (p).",
  reconnecting: "The stream broke off. It is being opened again.",
  offline: "Nothing can be read or changed now. It is tried again every 2 s.",
};

function wordsOf(state: LiveState): { word: string; rest: string } {
  const at = lastFrameAt.value;
  const where = zone.value;
  if (state === "connecting") return { word: "Connecting", rest: "" };
  if (state === "live") return { word: "Live", rest: `, ${formatClock(secondTick.value, where)} ${zoneAbbreviation(secondTick.value, where)}` };
  if (state === "paused") return { word: "Paused", rest: at > 0 ? `, data of ${formatClock(at, where)}` : "" };
  if (state === "reconnecting") return { word: "Reconnecting", rest: at > 0 ? `, data of ${formatClock(at, where)}` : "" };
  return { word: "Offline", rest: "" };
}

/** A clock that goes on is left out: a reader would be told of each second. */
function labelOf(state: LiveState, word: string, rest: string): string {
  if (state === "paused") return `${word}${rest}. Go on`;
  return `${word}${state === "live" ? "" : rest}. Pause live updates`;
}

/** How old what one sees is. A press pauses and goes on. */
export function LiveMark() {
  const state = liveState.value;
  const { word, rest } = wordsOf(state);
  return (
    <button
      type="button"
      class={`live ${state}`}
      aria-label={labelOf(state, word, rest)}
      onClick={() => setPaused(!isPaused.value)}
      onPointerEnter={(event) => showTip(event.currentTarget, TIPS[state])}
      onPointerLeave={hideTip}
      onFocus={(event) => event.currentTarget.matches(":focus-visible") && showTip(event.currentTarget, TIPS[state])}
      onBlur={hideTip}
    >
      <i />
      <span>
        {word}
        <span class="no-phone" aria-hidden="true">
          {rest}
        </span>
      </span>
    </button>
  );
}
