import { useResource } from "../api/resource";
import type { Alert } from "../api/types/events";
import { Banner } from "../components/Banner";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { plural } from "../format/numbers";
import { formatClock, toMillis } from "../format/times";
import { useRefreshOn, useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import { minuteTick, storeNow } from "../state/clock";
import { zone } from "../state/prefs";
import { Text } from "../text/Text";
import "../styles/views/alerts.css";
import "../styles/views/events.css";
import { History } from "./alerts/History";
import { FiringCard, PendingCard } from "./alerts/RuleCards";
import { RuleDetail } from "./alerts/RuleDetail";
import { RuleTable } from "./alerts/RuleTable";
import { type Silencing, useSilencing } from "./alerts/silence";

const READ_EVERY = 5000;
/** The leader looks every 30 s unless it is told otherwise; after so long without a look something is amiss. */
const STALE_AFTER = 150_000;

const HOW = 'app = Scheduler("redis://localhost:6379/0", monitoring=True)';

/** What fires, since when. */
export default function AlertsView({ params }: { params: { rule?: string } }) {
  const alerts = useResource<Alert[]>(() => "alerts", { every: READ_EVERY });
  useTopics("alert", "leader");
  useRefreshOn((event) => event.kind.startsWith("alert."), () => void alerts.refresh(), 300);
  const silencing = useSilencing(() => void alerts.refresh());
  const all = alerts.data.value;
  if (all === null || alerts.error.value) return <Card of={alerts}>{all && <Summary alerts={all} />}</Card>;
  if (all.length === 0) return <Off />;
  if (params.rule !== undefined) return <One name={params.rule} all={all} silencing={silencing} />;
  return (
    <>
      <Summary alerts={all} />
      <Stale alerts={all} />
      <div class="stack">
        <FiringCard alerts={all.filter((alert) => alert.state === "firing")} silencing={silencing} />
        <PendingCard alerts={all.filter((alert) => alert.state === "pending")} silencing={silencing} />
        <RuleTable alerts={all} />
        <History />
      </div>
      {silencing.dialog}
    </>
  );
}

function sentenceOf(firing: number): string {
  if (firing === 0) return "Nothing fires.";
  return firing === 1 ? "1 alert fires." : `${plural(firing, "alert")} fire.`;
}

function Summary({ alerts }: { alerts: readonly Alert[] }) {
  const firing = alerts.filter((alert) => alert.state === "firing" && !alert.silenced).length;
  const silenced = alerts.filter((alert) => alert.state === "firing" && alert.silenced).length;
  const pending = alerts.filter((alert) => alert.state === "pending").length;
  const looked = Math.max(...alerts.map((alert) => toMillis(alert.looked_at)));
  return (
    <div class="sumline" role="status">
      <span class={firing > 0 ? "c-bad" : undefined}>
        <b>{sentenceOf(firing)}</b>
      </span>
      {silenced > 0 && <span>{plural(silenced, "silenced alert")} {silenced === 1 ? "fires" : "fire"}.</span>}
      {pending > 0 && <span>{plural(pending, "rule")} {pending === 1 ? "holds" : "hold"}, but not yet for long enough.</span>}
      <span>{plural(alerts.length, "rule")} {alerts.length === 1 ? "is" : "are"} on.</span>
      <span class="dim" aria-live="off">Looked at {formatClock(looked, zone.value)}</span>
    </div>
  );
}

/** Rules that nobody looks at any more say nothing about now. */
function Stale({ alerts }: { alerts: readonly Alert[] }) {
  void minuteTick.value;
  const looked = Math.max(...alerts.map((alert) => toMillis(alert.looked_at)));
  if (storeNow() - looked < STALE_AFTER) return null;
  return (
    <Banner tone="heal" action={<Link class="btn" to="workers">Workers</Link>}>
      Nobody has looked since {formatClock(looked, zone.value)}, so this is how it was then. Is a node up, and does every node that may lead have monitoring on?
    </Banner>
  );
}

function One({ name, all, silencing }: { name: string; all: readonly Alert[]; silencing: Silencing }) {
  const found = all.find((alert) => alert.name === name);
  if (found) return <RuleDetail alert={found} silencing={silencing} />;
  return (
    <Card>
      <EmptyState action={<Link class="btn" to="alerts">All rules</Link>}>
        No rule has the name <Text>{name}</Text>. It may have been taken out of the options.
      </EmptyState>
    </Card>
  );
}

function Off() {
  return (
    <Card>
      <EmptyState line={HOW}>
        Nobody looks at alert rules. With monitoring on, the node that leads looks at eight built-in rules and your own, and tells here, in the log, to observers and by webhooks when one fires. Switch it on for every node that may lead:
      </EmptyState>
      <p class="alert-else small dim">
        Or <code>monitoring: {"{enabled: true}"}</code> in the file of options, or <code>TICKWORK_MONITORING=true</code> in the environment.
      </p>
    </Card>
  );
}
