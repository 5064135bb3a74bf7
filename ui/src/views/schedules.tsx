import { useState } from "preact/hooks";
import { get } from "../api/client";
import { textOfError } from "../api/errors";
import { useResource } from "../api/resource";
import type { Calendar, Schedule, SchedulePage } from "../api/types/schedules";
import { Button, reasonOff } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { FilterBar } from "../components/FilterBar";
import { Menu } from "../components/Menu";
import { Duration } from "../components/numbers";
import { Strip } from "../components/Strip";
import { type Column, Table } from "../components/Table";
import { TimeAgo } from "../components/TimeAgo";
import { toast } from "../components/toasts";
import { formatBounded } from "../format/numbers";
import { Icon } from "../icons/Icon";
import { useKeys } from "../keys/registry";
import { useRefreshOn, useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import { navigate, pathOf } from "../router/location";
import { useQueryParam } from "../router/query";
import { minuteTick } from "../state/clock";
import { zoneOfSchedule } from "../state/prefs";
import { plainText } from "../text/split";
import { Text } from "../text/Text";
import { type ScheduleActions, useScheduleActions } from "./schedules/actions";
import { DayStrip } from "./schedules/DayStrip";
import { narrow, SCHEDULE_QUALIFIERS, valuesOf } from "./schedules/filter";
import { isLate, StateMark, stateOf, stripOf } from "./schedules/state";
import "../styles/views/schedules.css";

export default function SchedulesView() {
  const filter = useQueryParam("q");
  const first = useResource<SchedulePage>(() => "schedules", { every: 15_000 });
  const calendar = useResource<Calendar>(() => "schedules/calendar", { every: 300_000 });
  const [later, setLater] = useState<SchedulePage | null>(null);
  const refresh = () => {
    void first.refresh();
    void calendar.refresh();
  };
  const actions = useScheduleActions(refresh);
  useTopics("schedule");
  useRefreshOn((event) => event.kind.startsWith("schedule."), () => void first.refresh(), 2000);
  useKeys([{ keys: "n", text: "New schedule", group: "This view", when: () => reasonOff("operator", null) === null, run: () => navigate("schedules/new") }]);
  const all = [...(first.data.value?.items ?? []), ...(later?.items ?? [])];
  const cursor = later ? later.cursor : (first.data.value?.cursor ?? null);
  const loadMore = async () => {
    try {
      const page = await get<SchedulePage>("schedules", { query: { cursor } });
      setLater({ items: [...(later?.items ?? []), ...page.items], cursor: page.cursor });
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad" });
    }
  };
  const rows = narrow(all, filter.value, minuteTick.value);
  return (
    <>
      {(all.length > 0 || calendar.error.value) && <DayStrip of={calendar} />}
      <div class="schedule-tools">
        <FilterBar
          label="Filter schedules"
          placeholder="Filter: type: zone: is: source: …"
          value={filter.value}
          onChange={(text) => filter.set(text)}
          qualifiers={SCHEDULE_QUALIFIERS}
          values={(name, typed) => Promise.resolve(valuesOf(all, name, typed))}
        />
        <Summary all={all} isBound={cursor !== null} onPick={(text) => filter.set(text)} />
        <Button icon="plus" needs="operator" onClick={() => navigate("schedules/new")}>
          New schedule
        </Button>
      </div>
      <Card of={first}>
        {rows.length > 0 && (
          <Table
            label="Schedules"
            tall
            rows={rows}
            columns={columnsOf(actions)}
            rowKey={(row) => row.id}
            rowTo={(row) => pathOf("schedules", row.id)}
            foot={cursor && <Button small onClick={() => void loadMore()}>Load more</Button>}
          />
        )}
        {rows.length === 0 && all.length > 0 && <EmptyState action={<Button onClick={() => filter.set("")}>Take the filter away</Button>}>No schedule matches. {formatBounded(all.length, cursor !== null)} are there without the filter.</EmptyState>}
        {all.length === 0 && <EmptyState line={'@app.periodic("0 2 * * *")'}>No schedule yet. Make one:</EmptyState>}
      </Card>
      {actions.dialog}
    </>
  );
}

interface SummaryProps {
  all: readonly Schedule[];
  isBound: boolean;
  onPick: (filter: string) => void;
}

function Summary({ all, isBound, onPick }: SummaryProps) {
  if (all.length === 0) return <span class="sp" />;
  const count = (test: (schedule: Schedule) => boolean) => all.filter(test).length;
  const parts = [
    { filter: "", words: all.length === 1 ? "schedule" : "schedules", count: all.length },
    { filter: "is:paused", words: "paused", count: count((one) => stateOf(one) === "paused") },
    { filter: "is:stopped", words: "stopped itself", count: count((one) => stateOf(one) === "stopped"), bad: true },
    { filter: "is:late", words: "late", count: count((one) => isLate(one, minuteTick.value)), bad: true },
  ];
  return (
    <div class="sumline">
      {parts.map((part) => (
        <button type="button" key={part.words} class={part.bad && part.count > 0 ? "c-bad" : undefined} onClick={() => onPick(part.filter)}>
          <b>{formatBounded(part.count, isBound)}</b> {part.words}
        </button>
      ))}
    </div>
  );
}

function When({ row }: { row: Schedule }) {
  return (
    <div class="two">
      <Text>{row.description}</Text>
      <small class="no-phone">
        {row.cron === null ? "no cron line" : <span class="mono"><Text>{row.cron}</Text></span>}
        {row.cron !== null && <>, <Text>{row.timezone}</Text></>}
      </small>
    </div>
  );
}

function NextCell({ row }: { row: Schedule }) {
  if (row.next_at === null) {
    return (
      <div class="two">
        <span class="dim">none</span>
        <small>
          <Text>{row.stopped || (row.paused ? "paused" : row.cron === null ? "only when triggered" : "")}</Text>
        </small>
      </div>
    );
  }
  const own = zoneOfSchedule(row.timezone);
  return (
    <div class="two">
      <span class={isLate(row, minuteTick.value) ? "c-bad" : undefined}>
        <TimeAgo at={row.next_at} />
      </span>
      <small class="no-phone">
        <TimeAgo at={row.next_at} form={Date.parse(row.next_at) - minuteTick.value < 43_200_000 ? "clock" : "date"} inZone={own} />
        {row.next_mark && (
          <span class="dst">
            <Icon name="dst" />
            <Text>{row.next_mark}</Text>
          </span>
        )}
      </small>
    </div>
  );
}

function columnsOf(actions: ScheduleActions): Column<Schedule>[] {
  return [
    { id: "name", label: "Schedule", phone: 1, cut: true, width: "15%", title: (row) => plainText(row.name), cell: (row) => <Link class="strong" to={pathOf("schedules", row.id)}><Text>{row.name}</Text></Link> },
    { id: "when", label: "When", phone: 3, cut: true, title: (row) => plainText(row.description), cell: (row) => <When row={row} /> },
    { id: "next", label: "Next run", phone: 4, cut: true, width: "22%", title: (row) => plainText(row.stopped) || undefined, cell: (row) => <NextCell row={row} /> },
    { id: "runs", label: "Last 30 runs, newest right", width: "178px", cell: (row) => (row.runs.length > 0 ? <Strip runs={stripOf(row)} /> : <span class="dim">none yet</span>) },
    { id: "late", label: "Late, p95", num: true, class: "mid", width: "86px", cell: (row) => <Duration seconds={row.late} /> },
    { id: "by", label: "Made by", class: "mid", width: "76px", cell: (row) => (row.declared ? "code" : "API") },
    { id: "state", label: "State", phone: 2, width: "126px", cell: (row) => <StateMark schedule={row} /> },
    { id: "acts", label: "Actions", width: "46px", cell: (row) => <Menu label={`Actions on ${plainText(row.name)}`} kind="quiet" small entries={actions.entries(row)} /> },
  ];
}
