import { type ReadonlySignal, useComputed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/client";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { FilterBar, type ValueSource } from "../components/FilterBar";
import { Switch } from "../components/Switch";
import { Table } from "../components/Table";
import { formatCount, formatFigure } from "../format/numbers";
import { useEvents, useTopics } from "../live/hooks";
import { setQuery } from "../router/location";
import { useQueryParam } from "../router/query";
import { readerIsBusy } from "../state/interaction";
import "../styles/views/events.css";
import { columnsFor } from "./events/columns";
import { FactDetail } from "./events/FactDetail";
import { type EventFilter, EVENT_QUALIFIERS, NAMES, readFilter, writeFilter } from "./events/filter";
import { familyOf, KINDS } from "./events/kinds";
import { CALM_RATE, type EventLog, oneIn, useEventLog } from "./events/log";
import { LogTabs } from "./events/LogTabs";
import { NewerButton } from "./events/NewerButton";

/** The filter of the address: `q`, or its parts by their names, as links of other views may write it. */
function useFilter(): { text: string; filter: ReadonlySignal<EventFilter>; mistake: string | null; set: (text: string) => void } {
  const q = useQueryParam("q");
  const params = NAMES.map((name) => [name, useQueryParam(name)] as const);
  const text = useComputed(() => [writeFilter(Object.fromEntries(params.map(([name, param]) => [name, param.value]))), q.value].filter(Boolean).join(" "));
  const filter = useComputed(() => readFilter(text.value).filter);
  return {
    text: text.value,
    filter,
    mistake: readFilter(text.value).mistake,
    set: (next) => setQuery({ q: next, kind: null, id: null, type: null, worker: null, open: null }),
  };
}

const valuesOf: ValueSource = async (name, typed, signal) => {
  const begins = (text: string) => text.toLowerCase().startsWith(typed.toLowerCase());
  if (name === "type") return (await get<{ name: string }[]>("types", { signal })).filter((one) => begins(one.name)).map((one) => ({ text: one.name }));
  if (name === "worker") return (await get<{ items: { id: string }[] }>("workers", { signal })).items.filter((one) => begins(one.id)).map((one) => ({ text: one.id }));
  return [];
};

/** The stream is asked only for what can fit; once there is more than is kept, for next to nothing. */
function topicsFor(filter: EventFilter, isFull: boolean): string[] {
  if (isFull) return ["leader"];
  const family = familyOf(filter.kind ?? "");
  return KINDS.includes(family) ? [family] : [];
}

/** What happened: the facts of the log, newest first. */
export default function EventsView() {
  const { text, filter, mistake, set } = useFilter();
  const { first, log } = useEventLog(filter);
  const follow = useQueryParam("follow");
  const openRow = useQueryParam("open");
  const list = useRef<HTMLDivElement>(null);
  const isFollowing = follow.value === "on" || (follow.value === "" && log.isCalm.value);
  const { rows, isCut } = log.feed;

  useTopics(...topicsFor(filter.value, isCut.value && !isFollowing));
  useEvents(() => log.wake());
  log.isFollowing = isFollowing;
  // Nothing moves under the reader: not while something is done, pointed at or read further down.
  log.isHeld = () => readerIsBusy.peek() || scrollY > 80 || rows.peek().some((row) => String(row.seq) === openRow.value) || (list.current?.matches(":hover, :focus-within") ?? false);
  useEffect(() => {
    if (isFollowing) log.show();
  }, [isFollowing]);

  const setFollowing = (on: boolean) => {
    follow.set(on ? "on" : "off", "replace");
    // What was left out while one in so many was shown is of interest again.
    if (!on && oneIn(log.rate.peek()) > 1) log.again();
  };
  const setFilter = (next: EventFilter) => set(writeFilter(next));
  return (
    <>
      <LogTabs current="events" />
      <div class="filter events-filter">
        <FilterBar label="Filter events" placeholder="Filter: kind: id: type: worker:" value={text} onChange={set} qualifiers={EVENT_QUALIFIERS} values={valuesOf} error={mistake} />
        <span class="follow">
          <Switch on={isFollowing} onChange={setFollowing}>
            Follow
          </Switch>
        </span>
      </div>
      <Pace log={log} isFollowing={isFollowing} onFollow={() => setFollowing(true)} />
      <div ref={list} onPointerLeave={() => isFollowing && !log.isHeld() && log.show()}>
        <Card of={first}>
          {rows.value.length > 0 && (
            <Table
              label="Events"
              rows={rows.value}
              columns={columnsFor(rows.value)}
              rowKey={(row) => String(row.seq)}
              onOpen={(row) => openRow.set(openRow.value === String(row.seq) ? "" : String(row.seq), "replace")}
              detail={(row) => (openRow.value === String(row.seq) ? <FactDetail fact={row} filter={filter.value} onFilter={setFilter} /> : null)}
              foot={<Foot log={log} />}
            />
          )}
          {rows.value.length === 0 && <Nothing log={log} isFiltered={text !== ""} onClear={() => set("")} />}
        </Card>
      </div>
    </>
  );
}

/** How fast facts come, and those that wait to be shown. The line is always there, so that nothing moves when it changes. */
function Pace({ log, isFollowing, onFollow }: { log: EventLog; isFollowing: boolean; onFollow: () => void }) {
  const rate = log.rate.value;
  const every = oneIn(rate);
  return (
    <div class="sumline pace" aria-live="off">
      <span>
        {rate < 0.05 ? "Nothing new at the moment." : <>It runs at <b>{formatFigure(Number(rate.toPrecision(2)))}</b> a second.</>}
        {every > 1 && isFollowing && ` One in ${every} is shown.`}
      </span>
      {rate > CALM_RATE && !isFollowing && (
        <button type="button" class="link" onClick={onFollow}>
          Follow one in {every}
        </button>
      )}
      <NewerButton count={log.feed.waiting.value.length} isBound={log.feed.isCut.value} one="newer event" onShow={() => log.show()} />
    </div>
  );
}

function Foot({ log }: { log: EventLog }) {
  if (log.problem.value) return <><span>Older events could not be read: {log.problem.value.replace(/\.$/, "")}.</span><Older log={log}>Try again</Older></>;
  if (log.feed.before.value !== null) return <Older log={log}>Older events</Older>;
  return <span>{log.feed.missed.value ? "Older events have left the log." : "This is where the log begins."}</span>;
}

function Older({ log, children }: { log: EventLog; children: string }) {
  return (
    <Button small off={log.isReadingOlder.value ? "They are being read." : null} onClick={() => void log.readOlder()}>
      {children}
    </Button>
  );
}

/** No fact is not the same as none among those that were looked at. */
function Nothing({ log, isFiltered, onClear }: { log: EventLog; isFiltered: boolean; onClear: () => void }) {
  if (log.feed.before.value !== null) {
    return <EmptyState action={<Older log={log}>Look further back</Older>}>No event fits among the newest {formatCount(log.looked.value)} of the log.</EmptyState>;
  }
  if (isFiltered) {
    const gone = log.feed.missed.value ? " Older events have left it." : "";
    return <EmptyState action={<Button onClick={onClear}>Show all events</Button>}>No event of the log fits this filter.{gone}</EmptyState>;
  }
  return <EmptyState line={"tickwork submit greet '\"Ada\"'"}>No event yet. The log tells of each step of every task, and of workers, schedules, queues and what holds them back. Submit a task:</EmptyState>;
}
