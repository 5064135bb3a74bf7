import type { Breaker, Limit, SwitchedOff } from "../../api/types/limits";
import { Button } from "../../components/Button";
import { Bar, Held } from "../../components/marks";
import { Count } from "../../components/numbers";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { formatCount, plural } from "../../format/numbers";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { heldBy, rateText, splitOf } from "./of";

function OfCell({ of }: { of: string }) {
  const { kind, name } = splitOf(of);
  return (
    <>
      <span class="dim">{kind}</span>{" "}
      <span class="strong">
        <Text>{name}</Text>
      </span>
    </>
  );
}

/** Who set it, when and why; "code" where nobody did. */
function SetBy({ by, note, since, isHand = true }: { by: string; note: string; since: string | null; isHand?: boolean }) {
  if (!isHand) return <span class="dim">code</span>;
  return (
    <div class="two">
      <span class="cut">
        by <Text>{by || "hand"}</Text>
        {note && (
          <>
            : <Text>{note}</Text>
          </>
        )}
      </span>
      {since && (
        <small>
          <TimeAgo at={since} />
        </small>
      )}
    </div>
  );
}

interface GaugeProps {
  /** null where each key has its own, or nobody has asked yet. */
  value: number | null;
  most: number;
  words: string;
  tone: "play" | "heal";
  isEach: boolean;
}

function Gauge({ value, most, words, tone, isEach }: GaugeProps) {
  if (value === null) return <span class="dim">{isEach ? "of each key" : "not used yet"}</span>;
  const text = `${formatCount(Math.floor(value))} of ${formatCount(most)} ${words}`;
  return (
    <span class="gauge">
      <Bar share={value / most} tone={tone} label={text} /> {text}
    </span>
  );
}

/** How many wait; of a limit for each key also where. */
function Waiting({ count, filter, keys = {} }: { count: number; filter: string; keys?: Readonly<Record<string, number>> }) {
  const names = Object.keys(keys);
  return (
    <>
      <Count value={count} to="tasks" query={{ q: filter }} />
      {names.length > 0 && count > 0 && <span class="dim"> in {plural(names.length, "key")}</span>}
    </>
  );
}

function ofColumn<Row extends { of: string }>(): Column<Row> {
  return { id: "of", label: "Of", phone: 1, cut: true, width: "20%", title: (row) => plainText(row.of), cell: (row) => <OfCell of={row.of} /> };
}

interface LimitActions {
  onChange: (limit: Limit) => void;
  onRemove: (limit: Limit) => void;
}

function limitEnd({ onChange, onRemove }: LimitActions): Column<Limit>[] {
  return [
    { id: "waiting", label: "Waiting", num: true, width: "150px", phone: 2, title: (row) => keysText(row), cell: (row) => <Waiting count={row.waiting} filter={heldBy(row.of, "limit")} keys={row.keys} /> },
    { id: "by", label: "Set by", cut: true, phone: 4, title: (row) => plainText(row.note), cell: (row) => <SetBy by={row.by} note={row.note} since={row.since} isHand={row.origin === "hand"} /> },
    {
      id: "acts",
      label: "Actions",
      num: true,
      width: "192px",
      cell: (row) => (
        <span class="acts-cell">
          <Button small needs="operator" onClick={() => onChange(row)}>
            Change…
          </Button>
          {row.origin === "hand" && (
            <Button small needs="operator" onClick={() => onRemove(row)}>
              Remove…
            </Button>
          )}
        </span>
      ),
    },
  ];
}

function keysText(row: Limit): string | undefined {
  const keys = Object.entries(row.keys).map(([key, count]) => `${plainText(key)} ${formatCount(count)}`);
  return keys.length > 0 ? keys.join(", ") : undefined;
}

const each = (row: Limit) => (row.per === "key" ? <span class="dim"> for each key</span> : null);

export function RateTable({ limits, ...actions }: LimitActions & { limits: readonly Limit[] }) {
  const columns: Column<Limit>[] = [
    ofColumn(),
    {
      id: "limit",
      label: "Starts",
      width: "190px",
      phone: 3,
      cell: (row) =>
        row.rate === null ? (
          <span class="mid">no limit</span>
        ) : (
          <>
            {rateText(row.rate)}
            {row.burst !== null && <span class="mid">, burst {formatCount(row.burst)}</span>}
            {each(row)}
          </>
        ),
    },
    { id: "now", label: "Left now", width: "190px", cell: (row) => row.rate !== null && <Gauge value={row.tokens} most={Math.max(row.burst ?? 1, 1)} words="left" tone={row.waiting > 0 ? "heal" : "play"} isEach={row.per === "key"} /> },
    ...limitEnd(actions),
  ];
  return <Table label="Rate limits" tall rows={limits} columns={columns} rowKey={(row) => row.of} onOpen={actions.onChange} withoutKeys />;
}

export function ConcurrencyTable({ limits, ...actions }: LimitActions & { limits: readonly Limit[] }) {
  const columns: Column<Limit>[] = [
    ofColumn(),
    { id: "limit", label: "At a time", width: "190px", phone: 3, cell: (row) => <>{formatCount(row.concurrency ?? 0)} at a time{each(row)}</> },
    { id: "now", label: "Running", width: "190px", cell: (row) => <Gauge value={row.running} most={row.concurrency ?? 1} words="run" tone={row.waiting > 0 ? "heal" : "play"} isEach={row.per === "key"} /> },
    ...limitEnd(actions),
  ];
  return <Table label="Concurrency limits" tall rows={limits} columns={columns} rowKey={(row) => row.of} onOpen={actions.onChange} withoutKeys />;
}

function BreakerEnd({ row }: { row: Breaker }) {
  if (row.state === "half_open") return <span class="mid">one task is let through to try</span>;
  if (row.open_until === null) return <span class="mid">until somebody closes it</span>;
  return (
    <span class="mid">
      {row.by_hand ? "closes" : "tries again"} <TimeAgo at={row.open_until} />
    </span>
  );
}

export function BreakerTable({ breakers, chosen, onClose }: { breakers: readonly Breaker[]; chosen: string; onClose: (breaker: Breaker) => void }) {
  const columns: Column<Breaker>[] = [
    ofColumn(),
    { id: "state", label: "State", width: "190px", phone: 4, cell: (row) => <Held icon="breaker">{row.state === "half_open" ? "half open" : row.state}{row.failures > 0 && `, ${plural(row.failures, "failure")} in a row`}</Held> },
    { id: "end", label: "Lets go", width: "190px", phone: 3, cell: (row) => <BreakerEnd row={row} /> },
    { id: "waiting", label: "Waiting", num: true, width: "150px", phone: 2, cell: (row) => <Waiting count={row.waiting} filter={heldBy(row.of, "breaker")} /> },
    { id: "by", label: "Opened by", cut: true, title: (row) => plainText(row.note), cell: (row) => (row.by_hand ? <SetBy by={row.by} note={row.note} since={row.since} /> : <span class="dim">failures</span>) },
    { id: "acts", label: "Actions", num: true, width: "192px", cell: (row) => <Button small needs="operator" onClick={() => onClose(row)}>Close…</Button> },
  ];
  return <Table label="Breakers" tall rows={breakers} columns={columns} rowKey={(row) => row.of} onOpen={onClose} rowClass={(row) => (chosen && (row.of === chosen || splitOf(row.of).name === chosen) ? "sel" : undefined)} withoutKeys />;
}

export function SwitchTable({ switches, onSwitchOn }: { switches: readonly SwitchedOff[]; onSwitchOn: (off: SwitchedOff) => void }) {
  const columns: Column<SwitchedOff>[] = [
    ofColumn(),
    { id: "state", label: "State", width: "190px", phone: 4, cell: () => <Held icon="switch">off</Held> },
    { id: "until", label: "Lets go", width: "190px", phone: 3, cell: (row) => (row.until ? <TimeAgo at={row.until} /> : <span class="mid">until somebody switches it on</span>) },
    { id: "waiting", label: "Waiting", num: true, width: "150px", phone: 2, cell: (row) => <Waiting count={row.waiting} filter={heldBy(row.of, "switch")} /> },
    { id: "by", label: "Switched off by", cut: true, title: (row) => plainText(row.note), cell: (row) => <SetBy by={row.by} note={row.note} since={row.since} /> },
    { id: "acts", label: "Actions", num: true, width: "192px", cell: (row) => <Button small needs="operator" onClick={() => onSwitchOn(row)}>Switch on…</Button> },
  ];
  return <Table label="Switches" tall rows={switches} columns={columns} rowKey={(row) => row.of} onOpen={onSwitchOn} withoutKeys />;
}
