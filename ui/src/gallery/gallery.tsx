import { useState } from "preact/hooks";
import { Card } from "../components/Card";
import { Chart } from "../components/Chart";
import { CopyMenu } from "../components/CopyButton";
import { Figure, Figures } from "../components/Figure";
import { type Json, JsonViewer } from "../components/JsonViewer";
import { KeyValue } from "../components/KeyValue";
import { LogTail } from "../components/LogTail";
import { Bar, Legend, Pill, StatusPill, Tag } from "../components/marks";
import { Button } from "../components/Button";
import { CopyButton } from "../components/CopyButton";
import { Slots } from "../components/Slots";
import { Sparkline } from "../components/Sparkline";
import { StateDiagram } from "../components/StateDiagram";
import { Strip } from "../components/Strip";
import { Tabs } from "../components/Tabs";
import { TimeAgo } from "../components/TimeAgo";
import { Timeline } from "../components/Timeline";
import { Traceback } from "../components/Traceback";
import { WhyBox } from "../components/WhyBox";
import { formatDuration } from "../format/durations";
import { useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import * as data from "./data";
import { Controls, Messages, Statuses, TaskList } from "./parts";

const MARKS = [{ at: data.MINUTES[28]!, label: "deploy 8f3c1d2" }];

function Charts() {
  return (
    <div class="grid g2">
      <Card title="Tasks a minute" more={<Legend entries={[{ label: "done", line: "solid" }, { label: "submitted", line: "dotted" }, { label: "retried", tone: "heal" }, { label: "died", tone: "bad" }]} />}>
        <Chart label="Submitted and done a minute, last hour" times={data.MINUTES} sync="gallery" marks={MARKS} hideTimes onPick={() => undefined} series={[{ label: "done", values: data.DONE, area: true }, { label: "submitted", values: data.SUBMITTED, line: "dotted" }]} />
        <Chart label="Retries and deaths a minute, last hour" times={data.MINUTES} height={56} unit="failed attempts" sync="gallery" series={[{ label: "died", values: data.DIED, bars: "bad" }, { label: "retried", values: data.RETRIED, bars: "heal" }]} />
      </Card>
      <Card title="Run" more={<Legend entries={[{ label: "p50", line: "solid" }, { label: "p95", line: "thin" }, { label: "p99", line: "dotted" }]} />}>
        <Chart label="Run time" times={data.MINUTES} height={182} sync="gallery" marks={MARKS} format={formatDuration} series={[{ label: "p50", values: data.P50 }, { label: "p95", values: data.P95, line: "thin" }, { label: "p99", values: data.P99, line: "dotted" }]} />
      </Card>
    </div>
  );
}

function Numbers() {
  return (
    <Figures label="In figures">
      <Figure title="Done" value="28.8" unit="/s" sub="30.5/s come in" to="tasks"><Sparkline label="Done a minute" values={data.DONE} times={data.MINUTES} kind="area" /></Figure>
      <Figure title="Success, last hour" value="99.96" unit="%" sub="usually 99.99 %"><Sparkline label="Success" values={data.DONE} /></Figure>
      <Figure title="Oldest ready, not held" value="9.1" unit="s" sub="media; 1,616 are held"><Sparkline label="Oldest" values={data.P95} /></Figure>
      <Figure title="Wait, p95" value="0.52" unit="s" sub="p50 0.04 s · p99 2.9 s"><Sparkline label="Wait" values={data.P50} max={1} /></Figure>
      <Figure title="Run, p95" value={null} sub="p50 0.21 s · p99 2.2 s"><Sparkline label="Run" values={data.P99} /></Figure>
      <Figure title="Slots busy" value="63" unit="of 100" sub="6 workers, 1 lost"><Sparkline label="Deaths" values={data.DIED} kind="bars" /></Figure>
    </Figures>
  );
}

function Task() {
  const [attempt, setAttempt] = useState(2);
  return (
    <>
      <div class="head" style={{ marginTop: "24px" }}>
        <h2>charge_payment</h2>
        <StatusPill status="ready" ground />
        <Pill tone="heal">held by a breaker</Pill>
        <span class="mono dim no-phone">01a16b72-110a-7c4e-9b1d-9f3a61c2e81d</span>
        <CopyButton text="01a16b72" label="Copy the id" />
      </div>
      <WhyBox title="Why it is not running" tone="heal" icon="breaker" actions={<><Button small>Breaker</Button><Button small needs="operator">Close breaker…</Button></>}>
        Breaker charge_payment is open until 03:13:12; then one task is tried as a probe. 411 other tasks wait with this one. Waiting costs it no attempt.
      </WhyBox>
      <div class="aside">
        <div class="stack">
          <Card title="States" more="2 attempts, 0 losses" class="no-phone">
            <StateDiagram path={data.PATH} />
          </Card>
          <Card title="Where the time went" more="6 min 00 s since it was submitted">
            <Timeline phases={data.PHASES} chosen={attempt} onChoose={setAttempt} />
            <Traceback title={`Attempt ${attempt}`} error="GatewayTimeout: no answer from pay.example in 10 s" frames={data.FRAMES} text="Traceback" />
          </Card>
          <Card title="Log" more="24 lines, live">
            <LogTail lines={data.LOG} />
          </Card>
        </div>
        <div class="stack">
          <Card title="Facts">
            <KeyValue
              facts={[
                ["Queue", <Link to="queues/payments">payments</Link>],
                ["Submitted", <><TimeAgo at={data.NOW - 360_000} form="clock" />, <TimeAgo at={data.NOW - 360_000} /></>],
                ["Attempts", "2 of 3 used"],
                ["Tags", <><Tag>env:prod</Tag> <Tag>shop:paris</Tag></>],
                ["Last runs", <Strip runs={data.RUNS} />],
                ["Slots", <Slots total={20} busy={14} long={2} />],
                ["Progress", <><Bar share={0.73} label="73 %" /> page 41 of 56</>],
              ]}
            />
          </Card>
          <Card title="Payload" more={<CopyMenu forms={[{ name: "JSON", text: "{}" }]} />}>
            <JsonViewer value={data.PAYLOAD as Json} />
          </Card>
        </div>
      </div>
    </>
  );
}

/** Every component with made-up data. It is part of development builds only. */
export default function Gallery() {
  useTopics("task");
  return (
    <>
      <Tabs label="Status" tabs={[{ label: "All", to: "gallery", current: true, count: 953434 }, ...data.STATUSES.map((status, at) => ({ label: status, status, to: "gallery", query: { q: `status:${status}` }, current: false, count: at * 421 }))]} />
      <div class="stack">
        <Statuses />
        <Controls />
        <Messages />
        <Numbers />
        <Charts />
        <Task />
        <TaskList />
      </div>
    </>
  );
}
