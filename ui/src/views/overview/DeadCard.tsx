import type { FailureGroup } from "../../api/types/failures";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/marks";
import { Sparkline } from "../../components/Sparkline";
import { formatCount } from "../../format/numbers";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";

/** Dead letters, grouped by what went wrong. */
export function DeadCard({ failures, dead }: { failures: readonly FailureGroup[]; dead: number }) {
  return (
    <Card title="Dead letters by error" more={<Link to="failures">All {formatCount(dead)}</Link>}>
      {failures.length === 0 ? (
        <EmptyState>No dead letters. Tasks whose retries are spent come here.</EmptyState>
      ) : (
        <ol class="list overview-dead">
          {failures.map((group) => (
            <li key={group.id}>
              <Link class="cut" to={pathOf("failures", group.id)} title={plainText(group.message)}>
                <span class="strong">
                  <Text>{group.error || "No exception"}</Text>
                </span>{" "}
                {group.muted && <Note>muted</Note>}{" "}
                <span class="dim">
                  <Text>{group.types.join(", ")}</Text>
                </span>
              </Link>
              <Sparkline kind="bars" values={group.hours} label="Failed attempts an hour, last 24 hours" />
              <span class="num">{formatCount(group.dead)}</span>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
