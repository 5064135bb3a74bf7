import { useId } from "preact/hooks";
import { useResource } from "../../api/resource";
import type { Breaker } from "../../api/types/limits";
import { Button } from "../../components/Button";
import { formatSpan } from "../../format/durations";
import { formatBounded } from "../../format/numbers";
import { Icon } from "../../icons/Icon";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";

interface RetryPlanProps {
  count: number;
  isBound: boolean;
  types: readonly string[];
  rate: string;
  onRate: (rate: string) => void;
  onRetry: (rate: number) => void;
}

const MOST_A_SECOND = 100_000;

export function readRate(text: string): number | null {
  const rate = Number(text);
  return text.trim() !== "" && rate > 0 && rate <= MOST_A_SECOND ? rate : null;
}

/** How the dead letters of a group are sent back: not faster than what broke can bear. */
export function RetryPlan({ count, isBound, types, rate, onRate, onRetry }: RetryPlanProps) {
  const id = useId();
  const breakers = useResource<Breaker[]>(() => "breakers", { every: 10_000 });
  const open = breakers.data.value?.find((breaker) => breaker.state !== "closed" && types.some((type) => breaker.of === `type:${type}`));
  const wanted = readRate(rate);
  const tasks = `${formatBounded(count, isBound)} ${count === 1 ? "task" : "tasks"}`;
  const retry = () => wanted && onRetry(wanted);
  return (
    <form
      class="plan"
      aria-label={`Retry ${tasks}`}
      onSubmit={(event) => {
        event.preventDefault();
        retry();
      }}
    >
      <div class="row">
        <b>Retry {tasks}</b> <span class="dim">attempts start again from 1</span>
      </div>
      {open && (
        <div class="row c-heal">
          <Icon name="breaker" />
          <span>
            Breaker <Text>{open.of.replace("type:", "")}</Text> is {open.state === "open" ? "open" : "half open"}: they wait until it closes.{" "}
            <Link class="go" to={pathOf("limits", "breakers", open.of.replace("type:", ""))}>
              Show the breaker
            </Link>
          </span>
        </div>
      )}
      <div class="row">
        <label for={id}>at most</label>
        <input class="input short" id={id} type="text" inputMode="numeric" value={rate} aria-invalid={wanted === null} aria-describedby={`${id}-said`} onInput={(event) => onRate(event.currentTarget.value)} />
        <span>a second</span>
        <span class={wanted === null ? "c-bad" : "dim"} id={`${id}-said`}>
          {wanted === null ? "Give a number from 1 to 100,000." : `done in about ${formatSpan(Math.max(1, Math.ceil(count / wanted)))}`}
        </span>
        <span class="sp" />
        <Button kind="prime" needs="operator" off={wanted === null ? "Give a number of tasks a second first." : null} type="submit">
          Retry {tasks}…
        </Button>
      </div>
    </form>
  );
}
