import type { Schedule } from "../../api/types/schedules";
import { Card } from "../../components/Card";
import { JsonViewer } from "../../components/JsonViewer";
import { type Fact, KeyValue } from "../../components/KeyValue";
import { Tag } from "../../components/marks";
import { Duration } from "../../components/numbers";
import { TimeAgo } from "../../components/TimeAgo";
import { formatCount } from "../../format/numbers";
import { priorityName } from "../../format/ids";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { clocksText, RULES } from "./words";

/** What the schedule says about its ticks. */
export function RuleFacts({ schedule }: { schedule: Schedule }) {
  const facts: Fact[] = [
    ["Line", schedule.cron === null ? <span class="dim">none, it runs only when triggered</span> : <span class="mono"><Text>{schedule.cron}</Text></span>],
    ["Zone", schedule.cron !== null && <Text>{schedule.timezone}</Text>],
    ["Clocks", schedule.cron !== null && schedule.timezone !== "UTC" && clocksText(schedule.cron, schedule.dst)],
    ["Overlap", RULES.overlap[schedule.overlap]],
    ["Missed", RULES.misfire[schedule.misfire]],
    ["Grace", <><Duration seconds={schedule.misfire_grace} /> <span class="dim">{schedule.misfire === "all" ? `at most ${formatCount(schedule.misfire_cap)} at once` : "later than this a tick is missed"}</span></>],
    ["Retries spent", RULES.on_exhausted[schedule.on_exhausted]],
    ["Made by", schedule.declared ? "code, which writes it again at its start" : "API"],
    ["Made", <TimeAgo at={schedule.created_at} form="date" />],
    ["Changed", schedule.updated_at !== schedule.created_at && <TimeAgo at={schedule.updated_at} form="date" />],
  ];
  return (
    <Card title="Facts" class="facts">
      <KeyValue facts={facts} />
    </Card>
  );
}

/** What its runs are submitted with. */
export function RunFacts({ schedule }: { schedule: Schedule }) {
  const tags = Object.entries(schedule.tags);
  const facts: Fact[] = [
    ["Type", <Link to="tasks" query={{ q: `type:${schedule.type}` }}><Text>{schedule.type}</Text></Link>],
    ["Queue", <Link to={pathOf("queues", schedule.queue)}><Text>{schedule.queue}</Text></Link>],
    ["Priority", `${priorityName(schedule.priority)}, ${schedule.priority}`],
    ["Retries", schedule.max_retry === null ? <span class="dim">as the handler says</span> : formatCount(schedule.max_retry)],
    ["Timeout", schedule.timeout === null ? <span class="dim">as the handler says</span> : <Duration seconds={schedule.timeout} />],
    ["Key", schedule.key !== null && <Text>{schedule.key}</Text>],
    ["Tags", tags.length > 0 && <span class="row">{tags.map(([name, value]) => <Tag key={name}>{`${name}=${value}`}</Tag>)}</span>],
    ["Executor", schedule.executor !== "local" && <Text>{[schedule.executor, schedule.target].filter(Boolean).join(", target ")}</Text>],
    ["Tasks", <Link class="go" to="tasks" query={{ q: `schedule:${schedule.id}` }}>Show its tasks</Link>],
  ];
  return (
    <Card title="Its runs" class="facts">
      <KeyValue facts={facts} />
      {schedule.payload !== null && <JsonViewer value={schedule.payload} />}
    </Card>
  );
}
