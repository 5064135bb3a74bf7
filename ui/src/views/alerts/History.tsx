import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../../api/client";
import { textOfError } from "../../api/errors";
import { type Resource, useResource, withQuery } from "../../api/resource";
import type { EventPage, EventRow } from "../../api/types/events";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { TimeAgo } from "../../components/TimeAgo";
import { quote } from "../../filter/tokens";
import { useRefreshOn } from "../../live/hooks";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { FactTime, KindMark } from "../events/columns";
import { isEndOfLog } from "../events/log";

const WANTED = 20;
/** The log is not sorted by kinds: for a few alerts many facts are looked at, so this is bounded, and then asked. */
const LOOKS = 4;

/** The first page, and those after it until there are enough, the log ends, or it has been looked at for long. */
function useHistory(rule: string | undefined) {
  const first = useResource<EventPage>(() => withQuery("events", { kind: "alert", id: rule, limit: WANTED }));
  const older = useSignal<readonly EventRow[]>([]);
  const before = useSignal<number | null>(null);
  const problem = useSignal<string | null>(null);
  const look = async (from: number | null, looks: number) => {
    before.value = from;
    problem.value = null;
    const count = () => (first.data.peek()?.items.length ?? 0) + older.peek().length;
    try {
      for (let at = 0; at < looks && before.peek() !== null && count() < WANTED; at += 1) {
        const page = await get<EventPage>(withQuery("events", { kind: "alert", id: rule, limit: WANTED, before: before.peek() }));
        older.value = [...older.peek(), ...page.items];
        before.value = page.before !== null && page.items.length < WANTED && (await isEndOfLog(page.before)) ? null : page.before;
      }
    } catch (error) {
      problem.value = textOfError(error);
    }
  };
  const hasFirst = first.data.value !== null;
  useEffect(() => {
    if (first.data.peek()) void look(first.data.peek()?.before ?? null, LOOKS);
  }, [hasFirst]);
  return { first, older, before, problem, lookFurther: () => void look(before.peek(), LOOKS) };
}

function joined(first: Resource<EventPage>, older: readonly EventRow[]): EventRow[] {
  const seen = new Set<number>();
  return [...(first.data.value?.items ?? []), ...older].filter((fact) => !seen.has(fact.seq) && seen.add(fact.seq)).slice(0, WANTED);
}

/** When alerts fired and were over, as far as the log still has it. */
export function History({ rule }: { rule?: string }) {
  const { first, older, before, problem, lookFurther } = useHistory(rule);
  useRefreshOn((event) => event.kind.startsWith("alert."), () => void first.refresh());
  const facts = joined(first, older.value);
  const further = before.value !== null && facts.length < WANTED && (
    <Button small onClick={lookFurther}>
      Look further back
    </Button>
  );
  return (
    <Card of={first} title={rule ? "When it fired" : "When alerts fired"} more={<Link class="go" to="events" query={{ q: rule ? `kind:alert id:${quote(rule)}` : "kind:alert" }}>All in Events</Link>}>
      {facts.length === 0 && <EmptyState action={further}>{before.value === null ? "Nothing that the log still has." : "Nothing in the newer part of the log."}</EmptyState>}
      {facts.length > 0 && (
        <ul class="alert-history">
          {facts.map((fact) => (
            <li key={fact.seq}>
              <FactTime at={fact.at} />
              <KindMark kind={fact.kind} />
              {!rule && (
                <Link to={pathOf("alerts", fact.id)}>
                  <Text>{fact.id}</Text>
                </Link>
              )}
              <span class="mid cut" title={plainText(fact.detail)}>
                <Text>{fact.detail}</Text>
              </span>
              <span class="dim">
                <TimeAgo at={fact.at} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {(problem.value || (facts.length > 0 && further)) && (
        <div class="card-error">
          {problem.value && <span>The rest could not be read: {problem.value.replace(/\.$/, "")}.</span>}
          {further}
        </div>
      )}
    </Card>
  );
}
