import type { FailureGroup } from "../../api/types/failures";
import { Note } from "../../components/marks";
import { Count } from "../../components/numbers";
import { Sparkline } from "../../components/Sparkline";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { plural } from "../../format/numbers";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { minuteTick } from "../../state/clock";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { groupFilter } from "./bulk";
import { isNew, nameOf, type TypeRow } from "./filter";
import { hourStarts } from "./GroupDetail";

interface Counted {
  hours: number[];
  dead: number;
  total: number;
  first_seen: string;
  last_seen: string;
}

function Hours({ row }: { row: Counted }) {
  return <Sparkline values={row.hours} times={hourStarts(minuteTick.value)} kind="bars" tone={row.dead > 0 ? "bad" : "heal"} label="Failed attempts an hour, last 24 hours" format={(value) => plural(value, "attempt")} />;
}

function Seen({ row }: { row: Counted }) {
  return (
    <span class="two">
      <TimeAgo at={row.last_seen} form="near" />
      <small class="no-phone">
        <TimeAgo at={row.first_seen} form="near" />
      </small>
    </span>
  );
}

function counted<Row extends Counted>(queryOf: (row: Row) => string): Column<Row>[] {
  return [
    { id: "hours", label: "Last 24 hours", width: "100px", cell: (row) => <Hours row={row} /> },
    { id: "dead", label: "Died", num: true, width: "64px", phone: 2, class: "big", cell: (row) => <Count value={row.dead || null} to="tasks" query={{ q: queryOf(row) }} /> },
    { id: "total", label: "Attempts", num: true, width: "76px", class: "mid", cell: (row) => <Count value={row.total} /> },
    { id: "seen", label: "Last, first", num: true, width: "96px", phone: 4, cell: (row) => <Seen row={row} /> },
  ];
}

const groupColumns = (chosen: string): Column<FailureGroup>[] => [
  {
    id: "error",
    label: "Error",
    phone: 1,
    cut: true,
    title: (row) => plainText(`${row.error}: ${row.message}`),
    cell: (row) => (
      <div class="what">
        <div class="cut">
          <Link class="strong" to={pathOf("failures", row.id)} aria-current={row.id === chosen ? "true" : undefined}>
            <Text>{nameOf(row)}</Text>
          </Link>{" "}
          {row.muted && <Note>muted</Note>}
          {!row.muted && isNew(row, minuteTick.value) && <Note tone={row.dead > 0 ? "bad" : "heal"}>new</Note>}
        </div>
        <div class="cut">
          <span class="mid">
            <Text>{row.types.join(", ")}</Text>
          </span>{" "}
          <span class="dim">
            <Text>{row.error ? row.message : row.place}</Text>
          </span>
        </div>
      </div>
    ),
  },
  ...counted<FailureGroup>((row) => groupFilter(row.id)),
];

interface GroupTableProps {
  groups: readonly FailureGroup[];
  chosen: string;
  onOpen: (group: FailureGroup) => void;
}

/** What went wrong, one row an error. */
export function GroupTable({ groups, chosen, onOpen }: GroupTableProps) {
  return <Table label="Failures by error" tall rows={groups} columns={groupColumns(chosen)} rowKey={(row) => row.id} onOpen={onOpen} rowClass={(row) => (row.id === chosen ? "sel" : undefined)} />;
}

const typeColumns: readonly Column<TypeRow>[] = [
  {
    id: "type",
    label: "Type",
    phone: 1,
    cut: true,
    title: (row) => plainText(row.type),
    cell: (row) => (
      <div class="what">
        <div class="cut">
          <Link class="strong" to="failures" query={{ q: `type:${row.type}` }}>
            <Text>{row.type}</Text>
          </Link>
        </div>
        <div class="cut dim">{plural(row.errors, "error")}</div>
      </div>
    ),
  },
  ...counted<TypeRow>((row) => `type:${row.type} status:dead`),
];

/** The same by the type of the tasks; a row leads to the errors of that type. */
export function TypeTable({ rows, onOpen }: { rows: readonly TypeRow[]; onOpen: (row: TypeRow) => void }) {
  return <Table label="Failures by type" tall rows={rows} columns={typeColumns} rowKey={(row) => row.type} onOpen={onOpen} />;
}
