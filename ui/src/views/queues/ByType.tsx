import { useState } from "preact/hooks";
import { useResource } from "../../api/resource";
import type { TypeRow } from "../../api/types/queues";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { type Fact, KeyValue } from "../../components/KeyValue";
import { Held, Tag } from "../../components/marks";
import { Count, Duration } from "../../components/numbers";
import { type Column, Table } from "../../components/Table";
import { tokenText } from "../../filter/tokens";
import { formatPercent } from "../../format/numbers";
import { useRefreshOn, useTopics } from "../../live/hooks";
import { Link } from "../../router/Link";
import { useQueryParam } from "../../router/query";
import { Text } from "../../text/Text";
import { unlessPaused, useCalm } from "../overview/calm";
import { type Pausable, PauseDialog, resume } from "./PauseDialog";
import { Failed } from "./QueueTable";
import { policiesOf, queuesOf, signatureOf } from "./signature";
import { QueueLinks } from "./QueueLinks";

/** The catalogue: what can be submitted, how it is run, and how it does. */
export function ByType() {
  const types = useResource<TypeRow[]>(() => "types", { every: unlessPaused(10_000) });
  const open = useQueryParam("open");
  const [asking, setAsking] = useState<Pausable | null>(null);
  const refresh = () => void types.refresh();
  useTopics("type");
  useRefreshOn((event) => event.kind.startsWith("type."), refresh);
  const rows = useCalm(types) ?? [];
  const acts: Acts = { pause: (name) => setAsking({ kind: "type", name }), resume: (name) => resume({ kind: "type", name }, refresh) };
  return (
    <Card of={types} class="type-table">
      {rows.length === 0 ? (
        <EmptyState line={"@app.task\ndef greet(name: str): ..."}>Types appear when a worker that knows them is up. Write one:</EmptyState>
      ) : (
        <Table
          label="Task types"
          rows={rows}
          columns={columnsFor(acts)}
          tall
          rowKey={(row) => row.name}
          onOpen={(row) => open.set(open.value === row.name ? "" : row.name, "replace")}
          detail={(row) => (row.name === open.value ? <TypeDetail type={row} acts={acts} /> : null)}
        />
      )}
      {asking && <PauseDialog what={asking} onDone={refresh} onClose={() => setAsking(null)} />}
    </Card>
  );
}

interface Acts {
  pause: (name: string) => void;
  resume: (name: string) => void;
}

function tasksOf(type: string, more = ""): { q: string } {
  return { q: `${tokenText("type", [type])} ${more}`.trim() };
}

function columnsFor(acts: Acts): readonly Column<TypeRow>[] {
  return [
    {
      id: "name",
      label: "Type",
      phone: 1,
      cut: true,
      title: (row) => signatureOf(row.name, row.schema),
      cell: (row) => (
        <div class="two">
          <Link class="strong" to="tasks" query={tasksOf(row.name)}>
            <Text>{row.name}</Text>
          </Link>
          <small class="mono">
            <Text>{row.schema ? signatureOf(row.name, row.schema).slice(row.name.length) || "()" : "signature not known here"}</Text>
          </small>
        </div>
      ),
    },
    {
      id: "queue",
      label: "Queue",
      width: "116px",
      cut: true,
      title: (row) => queuesOf(row).join(", "),
      cell: (row) => <QueueLinks names={queuesOf(row)} />,
    },
    { id: "policies", label: "Policies", width: "190px", cut: true, title: (row) => policiesOf(row.options).join(", "), cell: (row) => <Policies options={row.options} /> },
    { id: "submitted", label: "In, 1 h", num: true, width: "76px", cell: (row) => <Count value={row.submitted} to="tasks" query={tasksOf(row.name)} /> },
    { id: "ended", label: "Done, 1 h", num: true, width: "80px", phone: 3, cell: (row) => <DoneCell type={row} /> },
    { id: "failed", label: "Failed", num: true, width: "72px", cell: (row) => <Failed share={row.failure_rate} /> },
    { id: "wait", label: "Wait p95", num: true, width: "88px", cell: (row) => <Duration seconds={row.wait?.p95} /> },
    { id: "run", label: "Run p95", num: true, width: "88px", phone: 4, cell: (row) => <Duration seconds={row.run?.p95} /> },
    { id: "state", label: "State", width: "104px", phone: 2, cut: true, title: (row) => row.note || undefined, cell: (row) => <TypeState type={row} /> },
    { id: "act", label: "", width: "152px", num: true, cell: (row) => <TypeActs type={row} acts={acts} /> },
  ];
}

function DoneCell({ type }: { type: TypeRow }) {
  return (
    <>
      <Count value={type.ended} to="tasks" query={tasksOf(type.name, "status:success")} />
      <span class="phone-words">
        {" "}
        done in the last hour{type.failure_rate !== null && `, ${formatPercent(type.failure_rate)} failed`}
      </span>
    </>
  );
}

function Policies({ options }: { options: TypeRow["options"] }) {
  const policies = policiesOf(options);
  if (policies.length === 0) return <span class="dim">none of its own</span>;
  return (
    <>
      {policies.map((policy) => (
        <span key={policy}>
          <Tag>{policy}</Tag>{" "}
        </span>
      ))}
    </>
  );
}

function TypeState({ type }: { type: TypeRow }) {
  if (type.paused) return <Held icon="pause">paused</Held>;
  if (type.workers === 0) return <span class="c-heal">no worker</span>;
  return <span class="dim">on</span>;
}

function TypeActs({ type, acts }: { type: TypeRow; acts: Acts }) {
  return (
    <>
      <Link class="btn sm quiet" to="tasks/new" query={{ type: type.name }} aria-label={`Submit ${type.name}`}>
        Submit
      </Link>
      {type.paused ? (
        <Button small kind="quiet" needs="operator" label={`Resume type ${type.name}`} onClick={() => acts.resume(type.name)}>
          Resume
        </Button>
      ) : (
        <Button small kind="quiet" needs="operator" label={`Pause… type ${type.name}`} onClick={() => acts.pause(type.name)}>
          Pause…
        </Button>
      )}
    </>
  );
}

function optionText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
}

function TypeDetail({ type, acts }: { type: TypeRow; acts: Acts }) {
  const facts: Fact[] = [
    ["Signature", <span class="mono"><Text>{signatureOf(type.name, type.schema)}</Text></span>],
    ["Workers", type.workers === 0 ? "none knows it" : `${type.workers}, which take from ${type.queues.join(", ")}`],
    ["Note", type.note ? <Text>{type.note}</Text> : null],
    ["Wait", type.wait ? <Times of={type.wait} /> : null],
    ["Run", type.run ? <Times of={type.run} /> : null],
    ...Object.entries(type.options).map(([name, value]): Fact => [name, <span class="mono"><Text>{optionText(value)}</Text></span>]),
  ];
  return (
    <div class="inner">
      <KeyValue facts={facts} />
      <div class="only-phone type-acts">
        <TypeActs type={type} acts={acts} />
      </div>
    </div>
  );
}

function Times({ of }: { of: NonNullable<TypeRow["run"]> }) {
  return (
    <>
      p50 <Duration seconds={of.p50} />, p95 <Duration seconds={of.p95} />, p99 <Duration seconds={of.p99} />
    </>
  );
}
