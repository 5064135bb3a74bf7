import type { Attention, Overview } from "../../api/types/overview";
import { Elapsed, TimeAgo } from "../../components/TimeAgo";
import { formatDuration } from "../../format/durations";
import { Icon } from "../../icons/Icon";
import type { IconName } from "../../icons/paths";
import { StatusShape } from "../../icons/StatusShape";
import { Link } from "../../router/Link";
import { secondTick, storeNow } from "../../state/clock";
import { Text } from "../../text/Text";
import { joinOf, placeOf, verdictOf } from "./words";

/** The answer: how it is as a whole, and each thing that wants to be looked at. */
export function VerdictCard({ overview }: { overview: Overview }) {
  const verdict = verdictOf(overview);
  return (
    <section class="card verdict" aria-label="How it is">
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
      {overview.attention.length > 0 && (
        <ol class="att">
          {overview.attention.map((row) => (
            <Row row={row} key={`${row.kind} ${row.title}`} />
          ))}
        </ol>
      )}
    </section>
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

function Row({ row }: { row: Attention }) {
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
