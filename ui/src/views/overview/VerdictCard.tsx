import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Attention, Overview } from "../../api/types/overview";
import { Button } from "../../components/Button";
import { Elapsed, TimeAgo } from "../../components/TimeAgo";
import { formatDuration } from "../../format/durations";
import { formatCount } from "../../format/numbers";
import { Icon } from "../../icons/Icon";
import type { IconName } from "../../icons/paths";
import { StatusShape } from "../../icons/StatusShape";
import { Link } from "../../router/Link";
import { secondTick, storeNow } from "../../state/clock";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { useDismissed } from "./useDismissed";
import { joinOf, placeOf, verdictOf } from "./words";

const MOST = 6;

/** The answer: how it is as a whole, and each thing that wants to be looked at. */
export function VerdictCard({ overview }: { overview: Overview }) {
  const { shown, dismissed, dismiss, bringBack } = useDismissed(overview.status.namespace, overview.attention);
  const [isOpen, setOpen] = useState(false);
  const [moves, setMoves] = useState(0);
  const card = useRef<HTMLElement>(null);
  const more = useRef<HTMLButtonElement>(null);
  const verdict = verdictOf({ ...overview, attention: shown });
  // The button that had the focus has gone with its row.
  useLayoutEffect(() => {
    if (moves > 0) (more.current ?? card.current)?.focus({ preventScroll: true });
  }, [moves]);
  useLayoutEffect(() => {
    if (dismissed.length === 0) setOpen(false);
  }, [dismissed.length]);
  const act = (move: (row: Attention) => void) => (row: Attention) => {
    move(row);
    setMoves(moves + 1);
  };
  return (
    <section class="card verdict" aria-label="How it is" ref={card} tabIndex={-1}>
      <div class="h">
        <span class="say" role="status">
          {verdict.tone === "good" ? <StatusShape status="success" /> : <Icon name="failures" class={`c-${verdict.tone}`} />}
          <span>
            {verdict.say}
            {verdict.since !== null && <For since={verdict.since} />}
          </span>
        </span>
        {verdict.rest && (
          <span>
            <Text>{verdict.rest}</Text>
          </span>
        )}
      </div>
      {shown.length > 0 && <Rows rows={shown.slice(0, MOST)} icon="close" verb="Dismiss" onAct={act(dismiss)} />}
      {dismissed.length > 0 && (
        <p class="att-more">
          {formatCount(dismissed.length)} dismissed.{" "}
          <button type="button" class="link" aria-expanded={isOpen} ref={more} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Hide" : "Show"} {dismissed.length === 1 ? "it" : "them"}
          </button>
        </p>
      )}
      {isOpen && dismissed.length > 0 && <Rows rows={dismissed} icon="plus" verb="Bring back" onAct={act(bringBack)} />}
    </section>
  );
}

interface RowsProps {
  rows: readonly Attention[];
  icon: IconName;
  verb: string;
  onAct: (row: Attention) => void;
}

function Rows({ rows, icon, verb, onAct }: RowsProps) {
  return (
    <ol class="att">
      {rows.map((row) => (
        <Row row={row} key={`${row.kind} ${row.title}`}>
          <Button kind="quiet" small icon={icon} label={`${verb}: ${plainText(row.title)}`} onClick={() => onAct(row)} />
        </Row>
      ))}
    </ol>
  );
}

function For({ since }: { since: number }) {
  void secondTick.value;
  return <> for {formatDuration(Math.max(1, Math.round((storeNow() - since) / 1000)))}</>;
}

const ICONS: Readonly<Record<Attention["kind"], IconName>> = {
  breaker: "breaker",
  dead: "failures",
  queue: "pause",
  type: "pause",
  worker: "lost",
  schedule: "schedules",
  alert: "alerts",
  switch: "switch",
  workers: "workers",
};

const PLACES: Readonly<Record<Attention["kind"], string>> = {
  breaker: "Breaker",
  dead: "Failures",
  queue: "Queue",
  type: "Type",
  worker: "Worker",
  schedule: "Schedule",
  alert: "Alerts",
  switch: "Switch",
  workers: "Workers",
};

function Row({ row, children }: { row: Attention; children: ComponentChildren }) {
  return (
    <li>
      <span class={`c-${row.level}`}>{row.kind === "dead" ? <StatusShape status="dead" /> : <Icon name={ICONS[row.kind] ?? "info"} />}</span>
      <p>
        <b>
          <Text>{row.title}</Text>
        </b>
        {row.text ? joinOf(row) : "."}
        <Text>{row.text}</Text>
      </p>
      <span class="when">
        <When row={row} />
      </span>
      <Link class="btn sm" to={placeOf(row)} aria-label={`${PLACES[row.kind]}: ${row.title}`}>
        {PLACES[row.kind] ?? "Open"}
      </Link>
      {children}
    </li>
  );
}

function When({ row }: { row: Attention }) {
  if (row.at === null) return null;
  if (row.kind === "breaker") return <>next probe <TimeAgo at={row.at} form="clock" /></>;
  if (row.kind === "dead") return <>last <TimeAgo at={row.at} form="clock" /></>;
  if (row.kind === "worker") return <TimeAgo at={row.at} form="clock" />;
  return <>for <Elapsed since={row.at} /></>;
}
