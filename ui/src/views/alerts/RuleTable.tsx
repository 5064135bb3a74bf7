import type { Alert, AlertState } from "../../api/types/events";
import { Card } from "../../components/Card";
import { Note } from "../../components/marks";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { Icon } from "../../icons/Icon";
import { StatusShape } from "../../icons/StatusShape";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { conditionOf } from "./metrics";
import { BehindLink, Value } from "./RuleCards";

/** The shape and the word of how a rule stands. */
export function StateMark({ state }: { state: AlertState }) {
  return (
    <span class="st">
      {state === "firing" && <Icon name="alerts" class="kind-icon c-bad" />}
      {state === "pending" && <StatusShape status="pending" tone="heal" />}
      {state === "ok" && <StatusShape status="success" />}
      {state}
    </span>
  );
}

const COLUMNS: readonly Column<Alert>[] = [
  { id: "state", label: "State", width: "104px", phone: 2, cell: (row) => <StateMark state={row.state} /> },
  { id: "name", label: "Rule", width: "24%", cut: true, phone: 1, title: (row) => plainText(row.name), cell: (row) => <><Link class="strong" to={pathOf("alerts", row.name)}><Text>{row.name}</Text></Link>{row.silenced && <> <Note>silenced</Note></>}</> },
  { id: "when", label: "Fires when", cut: true, phone: 3, class: "mid", title: (row) => plainText(conditionOf(row)), cell: (row) => <Text>{conditionOf(row)}</Text> },
  { id: "value", label: "Now", num: true, width: "112px", phone: 4, cell: (row) => <Value alert={row} /> },
  { id: "since", label: "In this state for", num: true, width: "132px", class: "mid", cell: (row) => <TimeAgo at={row.since} form="age" /> },
  { id: "behind", label: "Look at", width: "132px", class: "mid", cell: (row) => <BehindLink alert={row} class="behind" /> },
];

/** Every rule that is looked at, whatever its state. */
export function RuleTable({ alerts }: { alerts: readonly Alert[] }) {
  const byName = [...alerts].sort((one, other) => one.name.localeCompare(other.name));
  return (
    <Card title="All rules">
      <Table label="Alert rules" rows={byName} columns={COLUMNS} rowKey={(row) => row.name} rowTo={(row) => pathOf("alerts", row.name)} foot={<span>Rules are written in the program or its file of options: <code>alert_rules</code> adds some, <code>alerts_off</code> leaves some out.</span>} />
    </Card>
  );
}
