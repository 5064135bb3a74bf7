import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Banner } from "../components/Banner";
import { BulkBar } from "../components/BulkBar";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { Check, Radios } from "../components/Check";
import { ConfirmDialog } from "../components/ConfirmDialog";
import { CopyButton, CopyMenu } from "../components/CopyButton";
import { EmptyState } from "../components/EmptyState";
import { Field } from "../components/Field";
import { FilterBar } from "../components/FilterBar";
import { Fresh } from "../components/Fresh";
import { HistogramStrip } from "../components/HistogramStrip";
import { Held, Note, Pill, StatusPill, Tag } from "../components/marks";
import { Menu } from "../components/Menu";
import { Count, Duration } from "../components/numbers";
import { Select } from "../components/Select";
import { Switch } from "../components/Switch";
import { type Column, type Sort, Table } from "../components/Table";
import { TimeAgo } from "../components/TimeAgo";
import { runWithUndo, toast } from "../components/toasts";
import { shortId } from "../format/ids";
import { Link } from "../router/Link";
import { pathOf } from "../router/location";
import { useQueryParam } from "../router/query";
import { Text } from "../text/Text";
import * as data from "./data";

export function Statuses() {
  return (
    <Card title="Statuses" padded>
      <div class="row" style={{ gap: "16px" }}>
        {data.STATUSES.map((status) => (
          <StatusPill status={status} />
        ))}
      </div>
      <div class="row" style={{ marginTop: "10px" }}>
        {data.STATUSES.map((status) => (
          <StatusPill status={status} ground />
        ))}
        <Pill tone="heal">held by a breaker</Pill>
      </div>
      <div class="row" style={{ marginTop: "10px" }}>
        <Note tone="bad">new</Note> <Note>muted by sam</Note> <Tag>env:prod</Tag> <Tag>{"evil\u202Egnp.exe\u200b"}</Tag>
        <Held icon="breaker">breaker open</Held> <Held icon="pause">paused by ines</Held>
      </div>
    </Card>
  );
}

export function Controls() {
  const [text, setText] = useState("");
  const [zone, setZone] = useState<"a" | "b">("a");
  const [isOn, setOn] = useState(true);
  const [isAsking, setAsking] = useState(false);
  return (
    <Card title="Controls" more={<Link to="tasks">All 5</Link>} padded>
      <div class="stack">
        <div class="row">
          <Button kind="prime">Retry 34 tasks</Button>
          <Button>Reschedule…</Button>
          <Button hint="e">Clone and edit</Button>
          <Button danger hint="c" onClick={() => setAsking(true)}>
            Cancel…
          </Button>
          <Button kind="quiet">Quiet</Button>
          <Button icon="more" label="More" />
          <Button needs="admin">Needs admin</Button>
          <Button small>Breaker</Button>
          <CopyButton text="x" label="Copy id" />
          <CopyMenu forms={[{ name: "JSON", text: "{}" }, { name: "curl", text: "curl" }, { name: "CLI", text: "tickwork" }, { name: "Python", text: "await" }]} />
          <Menu
            label="Views"
            entries={[
              { label: "Stuck", checked: true, note: "12", run: () => undefined },
              { label: "Slow", checked: false, run: () => undefined },
              { label: "Remove…", danger: true, needs: "admin", apart: true },
            ]}
          >
            Views
          </Menu>
        </div>
        <div class="grid g11">
          <Field label="Note" value={text} onInput={setText} hint="Others read it beside the pause." placeholder="database move" />
          <Field label="Cron line" code value="0 0 2 * *" onInput={() => undefined} error="A line has five or six fields; this one has 5." />
          <Select label="Zone" options={[{ value: "a", label: "Europe/Paris" }, { value: "b", label: "UTC" }]} value={zone} onChange={setZone} />
          <div class="stack" style={{ gap: "8px" }}>
            <Switch on={isOn} onChange={setOn}>Single keys act</Switch>
            <Check checked={isOn} onChange={setOn}>Follow</Check>
            <Radios label="When" value={zone} onChange={setZone} options={[{ value: "a", label: "when breaker charge_payment closes" }, { value: "b", label: "now, though the breaker is open: they would wait" }]} />
          </div>
        </div>
        <div class="row">
          <Button onClick={() => toast({ text: "409 cancelled, 3 had already started.", tone: "good", link: { label: "Show them", to: "tasks" } })}>Toast</Button>
          <Button onClick={() => runWithUndo({ text: "Cancels 412 tasks", run: async (handle) => handle.update({ text: "Cancelling", progress: { done: 180, total: 412 }, seconds: 4 }) })}>Toast with undo</Button>
        </div>
      </div>
      {isAsking && (
        <ConfirmDialog
          title="Cancel tasks"
          danger
          preview={async () => ({ count: 1412, samples: data.TASKS.slice(0, 6), moment: new Date().toISOString() })}
          sentence={(count) => `Cancel ${count.toLocaleString("en")} tasks of type charge_payment that wait for breaker charge_payment.`}
          button={(count) => `Cancel ${count.toLocaleString("en")} tasks`}
          onConfirm={() => runWithUndo({ text: "Cancels 1,412 tasks", run: async (handle) => handle.update({ text: "409 cancelled, 3 had already started." }) })}
          onClose={() => setAsking(false)}
        />
      )}
    </Card>
  );
}

export function Messages() {
  return (
    <div>
      <Banner tone="heal" action={<Button small>Show it</Button>}>This queue is paused by ines: “database move”.</Banner>
      <Banner tone="bad">The store cannot be reached since 03:12:31.</Banner>
      <Card>
        <EmptyState line="tickwork up MODULE:APP">No worker is up. Start one:</EmptyState>
      </Card>
    </div>
  );
}

const selection = signal<ReadonlySet<string>>(new Set());
const columns: readonly Column<data.TaskRow>[] = [
  { id: "status", label: "Status", width: "104px", phone: 2, cell: (row) => <StatusPill status={row.status} /> },
  { id: "type", label: "Type", width: "132px", cut: true, phone: 1, cell: (row) => <Link to={pathOf("tasks", row.id)}><Text>{row.type}</Text></Link> },
  { id: "id", label: "Id", width: "98px", class: "mono", cell: (row) => shortId(row.id), title: (row) => row.id },
  { id: "key", label: "Key", width: "120px", cut: true, class: "mid", cell: (row) => <Text>{row.key}</Text> },
  { id: "attempt", label: "Attempt", width: "72px", num: true, cell: (row) => `${row.attempt} of 4` },
  { id: "wait", label: "Wait", width: "92px", num: true, cell: (row) => <Duration seconds={row.wait} /> },
  { id: "run", label: "Run", width: "86px", num: true, cell: (row) => <Duration seconds={row.run} /> },
  { id: "reason", label: "Worker, or why it waits", cut: true, phone: 3, class: "mid", cell: (row) => <Text>{row.reason}</Text>, title: (row) => row.reason },
  { id: "changed", label: "Changed", width: "96px", num: true, phone: 4, class: "dim", sort: "descending", cell: (row) => <TimeAgo at={row.changed} form="age" /> },
];

export function TaskList() {
  const filter = useQueryParam("q", "status:ready,running statsu:dead");
  const [sort, setSort] = useState<Sort>({ by: "changed", direction: "descending" });
  const [newer, setNewer] = useState(212);
  return (
    <div>
      <div class="filter">
        <FilterBar
          label="Filter tasks"
          value={filter.value}
          onChange={(next) => filter.set(next, "replace")}
          values={async (name, typed) => ["payments", "email", "media", "default"].filter((one) => one.startsWith(typed)).map((text, at) => ({ text, hint: name, count: 1000 * (at + 1) }))}
        />
        <Menu label="Columns" entries={[{ label: "Key", checked: true, run: () => undefined }]}>Columns</Menu>
      </div>
      <HistogramStrip
        label="Tasks submitted in the last hour, by status now"
        starts={data.MINUTES}
        width={60_000}
        parts={[
          { label: "dead", tone: "bad", values: data.DIED.map((value) => value * 20) },
          { label: "still waiting", tone: "play", values: data.MINUTES.map((_, at) => (at > 50 ? (at - 50) * 40 : 0)) },
          { label: "success", tone: "quiet", values: data.DONE },
        ]}
        onPick={(from, to) => toast({ text: `${new Date(from).toISOString()} to ${new Date(to).toISOString()}` })}
      >
        <b><Count value={109860} /></b> tasks
      </HistogramStrip>
      <Card>
        <Fresh count={newer} what="newer tasks" onShow={() => setNewer(0)} />
        <Table label="Tasks" rows={data.TASKS} columns={columns} rowKey={(row) => row.id} rowTo={(row) => pathOf("tasks", row.id)} selection={selection} sort={sort} onSort={setSort} foot={<Button small>Load 100 more</Button>} />
      </Card>
      <BulkBar selection={selection} matching={{ count: 109860, isChosen: false, choose: () => undefined }}>
        <Button kind="quiet">Reschedule…</Button>
        <Button kind="quiet">Copy ids</Button>
        <Button kind="quiet" danger hint="c">Cancel…</Button>
      </BulkBar>
    </div>
  );
}
