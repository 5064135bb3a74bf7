import { useState } from "preact/hooks";
import { useResource, withQuery } from "../../api/resource";
import type { FailedTask, FailedTaskPage, FailureGroup } from "../../api/types/failures";
import { Button } from "../../components/Button";
import { TimeScale } from "../../components/HistogramStrip";
import { type Fact, KeyValue } from "../../components/KeyValue";
import { Note } from "../../components/marks";
import { Count } from "../../components/numbers";
import { Sparkline } from "../../components/Sparkline";
import { TimeAgo } from "../../components/TimeAgo";
import { tokenText } from "../../filter/tokens";
import { formatBounded, formatCount, plural } from "../../format/numbers";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { minuteTick } from "../../state/clock";
import { rememberTasks } from "../../state/recent";
import { Text } from "../../text/Text";
import { groupFilter } from "./bulk";
import { isNew, nameOf } from "./filter";
import { GroupDialog } from "./GroupDialog";
import { LastTraceback } from "./LastTraceback";
import { Muted, MuteButton } from "./muting";
import { RetryPlan } from "./RetryPlan";

const HOUR = 3_600_000;
const MOST_ROWS = 500;

/** The beginnings of the 24 hours of a group. */
export function hourStarts(now: number): number[] {
  const last = Math.floor(now / HOUR) * HOUR;
  return Array.from({ length: 24 }, (_, at) => last - (23 - at) * HOUR);
}

interface GroupDetailProps {
  group: FailureGroup;
  onChanged: () => void;
  /** The heading leads to the group's own page, unless this is it. */
  isPage?: boolean;
}

/** One group whole: when it happens, to whom, what to do about it, and where in the program. */
export function GroupDetail({ group, onChanged, isPage }: GroupDetailProps) {
  const [asking, setAsking] = useState<"retry" | "delete" | null>(null);
  const [rate, setRate] = useState("50");
  const tasks = useResource<FailedTaskPage>(() => withQuery("tasks", { q: groupFilter(group.id), limit: MOST_ROWS }), { every: 15_000 });
  const rows = tasks.data.value?.items ?? [];
  rememberTasks(rows);
  const isBound = tasks.data.value?.cursor != null;
  const starts = hourStarts(minuteTick.value);
  const name = nameOf(group);
  const changed = () => {
    void tasks.refresh();
    onChanged();
  };
  return (
    <section class={isPage ? "card group-detail" : "card group-detail sticky-pane"} aria-label={`Failure ${name}`}>
      <div class="t">
        <p class="dim">
          {group.types.map((type, at) => (
            <>
              {at > 0 && ", "}
              <Link to="tasks" query={{ q: `${tokenText("type", [type])} status:dead` }}>
                <Text>{type}</Text>
              </Link>
            </>
          ))}
          {rows.length > 0 && ` · ${attemptsText(rows)}`}
        </p>
        <h2>
          <Title group={group} rows={rows} isPage={isPage ?? false} /> {!group.muted && isNew(group, minuteTick.value) && <Note tone="bad">new</Note>}
        </h2>
      </div>
      <Muted group={group} onChanged={onChanged} />
      <div class="hours">
        <Sparkline values={group.hours} times={starts} kind="bars" tone={group.dead > 0 ? "bad" : "heal"} label="Failed attempts an hour, last 24 hours" format={(value) => plural(value, "attempt")} />
      </div>
      <TimeScale from={starts[0] ?? 0} to={(starts[0] ?? 0) + 24 * HOUR} />
      <KeyValue facts={factsOf(group, rows, isBound, tasks.data.value !== null)} />
      {rows.length > 0 && <RetryPlan count={rows.length} isBound={isBound} types={group.types} rate={rate} onRate={setRate} onRetry={() => setAsking("retry")} />}
      <div class="btn-row acts">
        {rows.length > 0 && (
          <Link class="btn" to="tasks" query={{ q: groupFilter(group.id) }}>
            Show the {formatBounded(rows.length, isBound)} {rows.length === 1 ? "task" : "tasks"}
          </Link>
        )}
        <MuteButton group={group} onChanged={onChanged} />
        {rows.length > 0 && (
          <Button danger needs="operator" onClick={() => setAsking("delete")}>
            Remove {formatBounded(rows.length, isBound)}…
          </Button>
        )}
      </div>
      {tasks.error.value && <p class="none c-bad">The dead letters could not be read: {tasks.error.value.detail}</p>}
      {tasks.data.value && rows.length === 0 && <p class="none">No dead letter of this error is left. Its tasks were sent back or removed, or are still retrying.</p>}
      <LastTraceback ids={[...new Set([...rows.slice(0, 1).map((row) => row.id), ...group.tasks])]} />
      {asking && (
        <GroupDialog
          wanted={asking === "retry" ? { action: "retry", did: "retried", group: group.id, rate: Number(rate) } : { action: "delete", did: "removed", group: group.id }}
          error={name}
          types={group.types}
          onDone={changed}
          onClose={() => setAsking(null)}
        />
      )}
    </section>
  );
}

/** Where all dead letters have the same words, these; else what they have in common. */
function Title({ group, rows, isPage }: { group: FailureGroup; rows: readonly FailedTask[]; isPage: boolean }) {
  const exact = rows[0]?.error;
  const common = group.error && group.message ? `${group.error}: ${group.message}` : nameOf(group);
  const words = <Text>{exact && rows.every((row) => row.error === exact) ? exact : common}</Text>;
  return isPage ? words : <Link to={pathOf("failures", group.id)}>{words}</Link>;
}

/** "attempt 3 of 3 in every case", or how they differ. */
function attemptsText(rows: readonly FailedTask[]): string {
  const attempts = rows.map((row) => row.attempt);
  const least = Math.min(...attempts);
  const most = Math.max(...attempts);
  if (least !== most) return `attempt ${least} to ${most}`;
  const allowed = rows.every((row) => row.max_retry === rows[0]?.max_retry) ? rows[0]?.max_retry : null;
  const of = typeof allowed === "number" && allowed + 1 >= most ? ` of ${allowed + 1}` : "";
  return `attempt ${most}${of}${rows.length > 1 ? " in every case" : ""}`;
}

function factsOf(group: FailureGroup, rows: readonly FailedTask[], isBound: boolean, isRead: boolean): Fact[] {
  return [
    ["First seen", <Seen at={group.first_seen} />],
    ["Last seen", <Seen at={group.last_seen} />],
    ["Place", group.place !== "" && <span class="mono"><Text>{group.place}</Text></span>],
    ["Attempts", `${formatCount(group.total)} failed, ${formatCount(group.dead)} of them the last one of their task`],
    ["Dead letters", isRead && <><Count value={rows.length} isBound={isBound} to="tasks" query={{ q: groupFilter(group.id) }} /> now</>],
    ["Keys", rows.length > 0 && <Shares rows={rows} of={(row) => row.key} name="key" none="none of them has a key" />],
    ["Workers", rows.length > 0 && <Shares rows={rows} of={(row) => row.worker_id} name="worker" none="none was on a worker" />],
  ];
}

/** The clock and how long ago within a day; beyond, the date says both. */
function Seen({ at }: { at: string }) {
  const isNear = minuteTick.value - Date.parse(at) < 24 * HOUR;
  return isNear ? (
    <>
      <TimeAgo at={at} form="clock" />, <TimeAgo at={at} />
    </>
  ) : (
    <TimeAgo at={at} form="date" />
  );
}

const MOST_SHARES = 5;

interface SharesProps {
  rows: readonly FailedTask[];
  of: (row: FailedTask) => string | null;
  name: "key" | "worker";
  none: string;
}

/** Who is hit, and how often: those with most first. */
function Shares({ rows, of, name, none }: SharesProps) {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = of(row);
    if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  if (counts.size === 0) return <span class="dim">{none}</span>;
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  const isEach = counts.size > 1 && sorted.every(([, count]) => count === 1);
  if (isEach && counts.size > MOST_SHARES) return <>{plural(counts.size, name)}, one dead letter each</>;
  const rest = sorted.length - MOST_SHARES;
  return (
    <>
      {sorted.slice(0, MOST_SHARES).map(([value, count], at) => (
        <>
          {at > 0 && ", "}
          <Link to={name === "worker" ? pathOf("workers", value) : "tasks"} query={name === "worker" ? {} : { q: `${tokenText("key", [value])} status:dead` }}>
            <Text>{value}</Text>
          </Link>{" "}
          <span class="mid">{formatCount(count)}</span>
        </>
      ))}
      {rest > 0 && <span class="dim"> and {formatCount(rest)} more</span>}
    </>
  );
}
