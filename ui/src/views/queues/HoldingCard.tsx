import { useResource } from "../../api/resource";
import type { Breaker, Limit } from "../../api/types/limits";
import type { TypeRow } from "../../api/types/queues";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Held } from "../../components/marks";
import { TimeAgo } from "../../components/TimeAgo";
import { formatCount, formatRate } from "../../format/numbers";
import { Link } from "../../router/Link";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { unlessPaused } from "../overview/calm";

/** The limit in words: "20/s, 3 at a time, for each key". */
function limitText(limit: Limit): string {
  const parts = [];
  if (limit.rate !== null) parts.push(formatRate(limit.rate));
  if (limit.burst !== null) parts.push(`burst ${formatCount(limit.burst)}`);
  if (limit.concurrency !== null) parts.push(`${formatCount(limit.concurrency)} at a time`);
  if (limit.per === "key") parts.push("for each key");
  return parts.join(", ") || "no limit, by hand";
}

function usedText(limit: Limit): string {
  const parts = [];
  if (limit.running !== null && limit.concurrency !== null) parts.push(`${formatCount(limit.running)} of ${formatCount(limit.concurrency)} run`);
  if (limit.tokens !== null && limit.rate !== null) parts.push(`${formatCount(Math.floor(limit.tokens))} starts left`);
  return parts.join(", ");
}

/** What holds tasks of this queue back, and how many: limits and breakers of the queue itself and of its types. */
export function HoldingCard({ name, types }: { name: string; types: readonly TypeRow[] }) {
  const limits = useResource<Limit[]>(() => "limits", { every: unlessPaused(10_000) });
  const breakers = useResource<Breaker[]>(() => "breakers", { every: unlessPaused(10_000) });
  const concerned = new Set([`queue:${name}`, ...types.map((type) => `type:${type.name}`)]);
  const mine = (limits.data.value ?? []).filter((limit) => concerned.has(limit.of));
  const open = (breakers.data.value ?? []).filter((breaker) => concerned.has(breaker.of) && breaker.state !== "closed");
  return (
    <Card title="Limits in force" of={limits} more={<Link to="limits">All limits</Link>}>
      {mine.length + open.length === 0 ? (
        <EmptyState line={'@app.task(rate="100/m", per="key")'}>Nothing limits this queue or its types. Limit a type:</EmptyState>
      ) : (
        <ul class="list holding">
          {open.map((breaker) => (
            <li key={`breaker ${breaker.of}`}>
              <span class="cut">
                <Held icon="breaker">
                  breaker <Text>{breaker.of}</Text> is open
                </Held>
              </span>
              <span class="dim">{breaker.open_until && <>next probe <TimeAgo at={breaker.open_until} form="clock" /></>}</span>
              <Waiting count={breaker.waiting} />
            </li>
          ))}
          {mine.map((limit) => (
            <li key={limit.of}>
              <span class="cut" title={plainText(limit.note)}>
                <span class="strong">
                  <Text>{limit.of}</Text>
                </span>{" "}
                {limitText(limit)}
                {limit.by && (
                  <span class="dim">
                    {" "}
                    by <Text>{limit.by}</Text>
                  </span>
                )}
              </span>
              <span class="dim nw">{usedText(limit)}</span>
              <Waiting count={limit.waiting} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Waiting({ count }: { count: number }) {
  return <span class={count > 0 ? "num c-heal" : "num dim"}>{count > 0 ? `${formatCount(count)} held` : "holds none"}</span>;
}
