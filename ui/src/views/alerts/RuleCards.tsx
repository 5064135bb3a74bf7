import type { Alert } from "../../api/types/events";
import { Card } from "../../components/Card";
import { Bar } from "../../components/marks";
import { TimeAgo } from "../../components/TimeAgo";
import { formatClock, toMillis } from "../../format/times";
import { Icon } from "../../icons/Icon";
import { StatusShape } from "../../icons/StatusShape";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { nowFor } from "../../state/clock";
import { zone } from "../../state/prefs";
import { Text } from "../../text/Text";
import { conditionOf, formatMetric, formatSpan, metricOf } from "./metrics";
import { Hushed, SilenceButton, type Silencing } from "./silence";

/** The value at the last look; "unknown" where it could not be read. */
export function Value({ alert }: { alert: Alert }) {
  if (alert.value === null) return <span class="dim">unknown</span>;
  return <span class="nw">{formatMetric(alert.metric, alert.value)}</span>;
}

/** Where one sees what is behind a metric. */
export function BehindLink({ alert, class: extra }: { alert: Alert; class?: string }) {
  const metric = metricOf(alert.metric);
  if (!metric) return null;
  return (
    <Link class={extra ?? "btn sm"} to={metric.to} query={metric.query}>
      {metric.place}
      <Icon name="right" />
    </Link>
  );
}

interface RowProps {
  alert: Alert;
  silencing: Silencing;
  children: preact.ComponentChildren;
}

function Row({ alert, silencing, children }: RowProps) {
  const isFiring = alert.state === "firing";
  const tone = alert.silenced ? "c-rest" : "c-bad";
  return (
    <li class="alert-row">
      {isFiring ? <Icon name="alerts" class={tone} /> : <StatusShape status="pending" tone="heal" />}
      <div class="alert-what">
        <Link class="strong" to={pathOf("alerts", alert.name)}>
          <Text>{alert.name}</Text>
        </Link>
        <small class="break">
          <Text>{conditionOf(alert)}</Text>
        </small>
        {alert.silenced && (
          <small>
            <Hushed word="silenced" hush={alert.silenced} />
          </small>
        )}
      </div>
      <span class="alert-now">
        now <b class={isFiring ? tone : undefined}><Value alert={alert} /></b>
      </span>
      <span class="alert-since">{children}</span>
      <span class="alert-acts">
        <SilenceButton alert={alert} silencing={silencing} small />
        <BehindLink alert={alert} />
      </span>
    </li>
  );
}

interface CardProps {
  alerts: readonly Alert[];
  silencing: Silencing;
}

/** Those that are silenced come last: they are nobody's turn. */
export function FiringCard({ alerts, silencing }: CardProps) {
  if (alerts.length === 0) return null;
  const sorted = [...alerts].sort((one, other) => Number(one.silenced !== null) - Number(other.silenced !== null));
  return (
    <Card title="Firing">
      <ul class="alert-list">
        {sorted.map((alert) => (
          <Row alert={alert} silencing={silencing} key={alert.name}>
            since {formatClock(toMillis(alert.since), zone.value)}
            <small>
              <TimeAgo at={alert.since} />
            </small>
          </Row>
        ))}
      </ul>
    </Card>
  );
}

/** How much of its duration a condition has held. */
export function HeldFor({ alert }: { alert: Alert }) {
  const since = toMillis(alert.since);
  const held = Math.max(0, Math.min(alert.duration, (nowFor(since) - since) / 1000));
  const text = `has held for ${formatSpan(Math.floor(held))} of ${formatSpan(alert.duration)}`;
  return (
    <>
      {text}
      <small>
        <Bar share={alert.duration > 0 ? held / alert.duration : 1} tone="heal" label={text} />
      </small>
    </>
  );
}

export function PendingCard({ alerts, silencing }: CardProps) {
  if (alerts.length === 0) return null;
  return (
    <Card title="Pending">
      <ul class="alert-list">
        {alerts.map((alert) => (
          <Row alert={alert} silencing={silencing} key={alert.name}>
            <HeldFor alert={alert} />
          </Row>
        ))}
      </ul>
    </Card>
  );
}
