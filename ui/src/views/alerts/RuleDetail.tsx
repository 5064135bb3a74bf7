import type { Alert } from "../../api/types/events";
import { Card } from "../../components/Card";
import { KeyValue } from "../../components/KeyValue";
import { Pill } from "../../components/marks";
import { TimeAgo } from "../../components/TimeAgo";
import { useTitle } from "../../state/page";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { History } from "./History";
import { conditionOf, metricOf } from "./metrics";
import { BehindLink, HeldFor, Value } from "./RuleCards";
import { Hushed, SilenceButton, type Silencing } from "./silence";

const TONE = { firing: "bad", pending: "heal", ok: "good" } as const;

/** One rule: what it looks at, how it stands, and when it fired. */
export function RuleDetail({ alert, silencing }: { alert: Alert; silencing: Silencing }) {
  useTitle(plainText(alert.name), [{ label: "Alerts", to: "alerts" }]);
  const metric = metricOf(alert.metric);
  return (
    <>
      <div class="head">
        <h2>
          <Text>{alert.name}</Text>
        </h2>
        <Pill tone={alert.silenced && alert.state === "firing" ? "rest" : TONE[alert.state]}>{alert.state}</Pill>
        {alert.silenced && <Pill>silenced</Pill>}
        <span class="sp" />
        <SilenceButton alert={alert} silencing={silencing} />
        <BehindLink alert={alert} class="btn" />
      </div>
      <div class="grid g11">
        <Card title="Rule">
          <KeyValue
            facts={[
              ["Fires when", <Text>{conditionOf(alert)}</Text>],
              ["Metric", metric ? <><span class="mono"><Text>{alert.metric}</Text></span>: {metric.means}</> : <span class="mono"><Text>{alert.metric}</Text></span>],
              ["Now", <Value alert={alert} />],
              ["State", alert.state === "pending" ? <span class="alert-since held-here"><HeldFor alert={alert} /></span> : <>{alert.state} since <TimeAgo at={alert.since} form="near" />, <TimeAgo at={alert.since} /></>],
              ["Silence", alert.silenced && <Hushed word="silenced" hush={alert.silenced} />],
              ["Looked at", <TimeAgo at={alert.looked_at} />],
            ]}
          />
        </Card>
        <History rule={alert.name} />
      </div>
      {silencing.dialog}
    </>
  );
}
