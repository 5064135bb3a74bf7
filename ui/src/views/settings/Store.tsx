import { useResource } from "../../api/resource";
import type { HealthCheck, ServerStatus } from "../../api/types/overview";
import type { FindingRow } from "../../api/types/settings";
import { Banner } from "../../components/Banner";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { KeyValue } from "../../components/KeyValue";
import { Pill } from "../../components/marks";
import { TimeAgo } from "../../components/TimeAgo";
import { formatCount, plural } from "../../format/numbers";
import { formatExact, toMillis } from "../../format/times";
import { Icon } from "../../icons/Icon";
import { StatusShape, type Tone } from "../../icons/StatusShape";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { zone } from "../../state/prefs";
import { reasonAgainst } from "../../state/session";
import { Text } from "../../text/Text";

type Level = FindingRow["level"] | HealthCheck["status"];

const WORST_FIRST: Readonly<Record<Level, number>> = { problem: 0, error: 0, warning: 1, ok: 2 };

function LevelShape({ level }: { level: Level }) {
  if (level === "ok") return <StatusShape status="success" />;
  return level === "warning" ? <Icon name="failures" class="finding-warns c-heal" /> : <StatusShape status="dead" />;
}

/** The server tells in lines of a log; here they stand by themselves. */
function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const WORD: Readonly<Record<Level, string>> = { ok: "In order", warning: "Warning", problem: "Problem", error: "Problem" };

/** What is right and wrong with the store, and how the whole stands. */
export function Store() {
  const reason = reasonAgainst("operator");
  return (
    <div class="settings-two">
      {reason ? <Banner>What is right and wrong with the store is looked at by those who can mend it. {reason}</Banner> : <Findings />}
      <Whole />
    </div>
  );
}

function sentenceOf(findings: readonly FindingRow[]): { text: string; tone: Tone } {
  const problems = findings.filter((one) => one.level === "problem").length;
  const warnings = findings.filter((one) => one.level === "warning").length;
  if (problems > 0) return { text: `${plural(problems, "problem")} ${problems === 1 ? "needs" : "need"} you.`, tone: "bad" };
  if (warnings > 0) return { text: `It works. ${plural(warnings, "thing")} could be better.`, tone: "heal" };
  return { text: "The store is as it should be.", tone: "good" };
}

function Findings() {
  const findings = useResource<FindingRow[]>(() => "doctor");
  const all = [...(findings.data.value ?? [])].sort((one, other) => WORST_FIRST[one.level] - WORST_FIRST[other.level]);
  const { text, tone } = sentenceOf(all);
  const again = (
    <Button small off={findings.loading.value ? "It is being looked at." : null} onClick={() => void findings.refresh()}>
      Look again
    </Button>
  );
  return (
    <Card of={findings} title="What was found" more={again}>
      {all.length === 0 ? (
        <EmptyState>There is nothing to check about this store: it has no settings of its own.</EmptyState>
      ) : (
        <>
          <p class={`finding-say c-${tone}`}>{text}</p>
          <ul class="findings">
            {all.map((one) => (
              <Finding finding={one} key={one.text} />
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}

function Finding({ finding }: { finding: FindingRow }) {
  return (
    <li>
      <LevelShape level={finding.level} />
      <div>
        <span class="sr">{WORD[finding.level]}: </span>
        <span class={finding.level === "ok" ? undefined : "strong"}>
          <Text>{sentence(finding.text)}</Text>
        </span>
        {finding.advice && (
          <p class="small mid break">
            <Text>{sentence(finding.advice)}</Text>
          </p>
        )}
      </div>
    </li>
  );
}

const HEALTH_TONE = { healthy: "good", degraded: "heal", unhealthy: "bad" } as const;

function Whole() {
  const status = useResource<ServerStatus>(() => "status", { every: 5000 });
  const now = status.data.value;
  return (
    <div class="stack">
      <Card of={status} title="Store and server">
        {now && (
          <KeyValue
            facts={[
              ["Store", <span class="mono"><Text>{now.store}</Text></span>],
              ["Namespace", <Text>{now.namespace}</Text>],
              ["Its time", formatExact(toMillis(now.time), zone.value)],
              ["Leader", now.leader ? <><Link to={pathOf("workers", now.leader)}><Text>{now.leader}</Text></Link>, term {formatCount(now.term ?? 0)}</> : "Nobody leads. Schedules and delays wait until a node does."],
              ["Workers", <Link to="workers">{plural(now.workers, "worker")}, {formatCount(now.busy)} of {formatCount(now.slots)} slots busy</Link>],
              ["Dropped", now.dropped_dead_letters > 0 ? `${plural(now.dropped_dead_letters, "dead letter")} had to go, since the queue of dead letters was full` : null],
              ["Version", <>Tickwork <Text>{now.version}</Text></>],
            ]}
          />
        )}
      </Card>
      {now && (
        <Card title="Health" more={<TimeAgo at={now.health.timestamp} />}>
          <p class="finding-say">
            <Pill tone={HEALTH_TONE[now.health.status]}>{now.health.status}</Pill>
          </p>
          <ul class="findings">
            {Object.entries(now.health.checks).map(([name, check]) => (
              <li key={name}>
                <LevelShape level={check.status} />
                <div>
                  <span class="sr">{WORD[check.status]}: </span>
                  <Text>{sentence(check.message)}</Text>
                </div>
              </li>
            ))}
          </ul>
        </Card>
      )}
    </div>
  );
}
