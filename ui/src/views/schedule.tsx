import { useResource } from "../api/resource";
import type { NextRun, Schedule, ScheduleRun } from "../api/types/schedules";
import { Button, reasonOff } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Menu } from "../components/Menu";
import { Strip } from "../components/Strip";
import { TimeAgo } from "../components/TimeAgo";
import { WhyBox } from "../components/WhyBox";
import { useKeys } from "../keys/registry";
import { useRefreshOn, useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import { navigate, pathOf } from "../router/location";
import type { ViewProps } from "../router/routes";
import { minuteTick } from "../state/clock";
import { useActions, useTitle } from "../state/page";
import { zone } from "../state/prefs";
import { plainText } from "../text/split";
import { Text } from "../text/Text";
import { liftOf, type ScheduleActions, useScheduleActions } from "./schedules/actions";
import { RuleFacts, RunFacts } from "./schedules/Facts";
import { History } from "./schedules/History";
import { NextRuns } from "./schedules/NextRuns";
import { isLate, StatePill, stateOf, stripOf } from "./schedules/state";
import { WeeksCard } from "./schedules/WeeksCard";
import "../styles/views/schedules.css";

const SHOWN_NEXT = 10;

export default function ScheduleView({ params }: ViewProps<"id">) {
  const path = pathOf("schedules", params.id);
  const schedule = useResource<Schedule>(() => path, { every: 30_000 });
  const next = useResource<NextRun[]>(() => `${path}/next?count=100`, { every: 60_000 });
  const runs = useResource<ScheduleRun[]>(() => `${path}/runs`, { every: 30_000 });
  const refresh = () => {
    for (const one of [schedule, next, runs]) void one.refresh();
  };
  const actions = useScheduleActions((verb) => (verb === "delete" ? navigate("schedules") : refresh()));
  useTopics("schedule");
  useRefreshOn((event) => event.kind.startsWith("schedule.") && event.id === params.id, refresh, 2000);
  const found = schedule.data.value;
  useTitle(plainText(found?.name ?? params.id), [{ label: "Schedules", to: "schedules" }]);
  useKeys(found ? keysOf(found, actions) : []);
  useActions(found ? keysOf(found, actions).map((key) => ({ label: key.text, run: key.run, key: key.keys, off: reasonOff("operator", null) })) : []);
  if (schedule.error.value?.status === 404) return <Gone />;
  if (!found) return <Card of={schedule} />;
  const isDaily = runs.data.value !== null && next.data.value !== null;
  return (
    <>
      <Header schedule={found} actions={actions} />
      <Why schedule={found} actions={actions} />
      <div class="aside">
        <div class="stack">
          <Card of={next} title="Next runs" more={nextMore(found)}>
            {next.data.value?.length === 0 ? <EmptyState>{noNextText(found)}</EmptyState> : <NextRuns runs={(next.data.value ?? []).slice(0, SHOWN_NEXT)} timezone={found.timezone} />}
          </Card>
          <Card of={runs} title="Last runs" more={<Strip runs={stripOf(found)} />}>
            {runs.data.value?.length === 0 ? <EmptyState>It has not run yet. Each tick and what came of it stands here.</EmptyState> : <History runs={runs.data.value ?? []} timezone={found.timezone} />}
          </Card>
        </div>
        <div class="stack">
          <RuleFacts schedule={found} />
          {isDaily && <WeeksCard runs={runs.data.value ?? []} next={next.data.value ?? []} zone={found.timezone} />}
          <RunFacts schedule={found} />
        </div>
      </div>
      {actions.dialog}
    </>
  );
}

function keysOf(schedule: Schedule, actions: ScheduleActions) {
  const group = "This view";
  const lift = liftOf(schedule);
  const when = () => reasonOff("operator", null) === null;
  return [
    { keys: "r", text: "Run it now", group, when, run: () => actions.ask("run", schedule) },
    { keys: "e", text: "Edit it", group, when, run: () => navigate(pathOf("schedules", schedule.id, "edit")) },
    lift ? { keys: "s", text: "Resume it", group, when, run: () => actions.ask(lift.verb, schedule) } : { keys: "s", text: "Pause it", group, when, run: () => actions.ask("pause", schedule) },
  ];
}

function Header({ schedule, actions }: { schedule: Schedule; actions: ScheduleActions }) {
  const lift = liftOf(schedule);
  return (
    <>
      <div class="head">
        <h2>
          <Text>{schedule.name}</Text>
        </h2>
        <StatePill schedule={schedule} />
        <span class="mid">
          <Text>{schedule.description}</Text>
          {schedule.cron !== null && <>, <Text>{schedule.timezone}</Text> time</>}
        </span>
        <span class="sp" />
        <div class="btn-row no-phone">
          <Button needs="operator" hint="r" onClick={() => actions.ask("run", schedule)}>
            Run now…
          </Button>
          {lift ? (
            <Button kind="prime" needs="operator" onClick={() => actions.ask(lift.verb, schedule)}>
              {lift.label}
            </Button>
          ) : (
            <Button needs="operator" onClick={() => actions.ask("pause", schedule)}>
              Pause…
            </Button>
          )}
          <Button needs="operator" hint="e" onClick={() => navigate(pathOf("schedules", schedule.id, "edit"))}>
            Edit
          </Button>
          <Menu label="More actions" entries={actions.entries(schedule)} />
        </div>
      </div>
      <div class="acts-phone only-phone">
        <Button needs="operator" onClick={() => actions.ask("run", schedule)}>
          Run now…
        </Button>
        <Button needs="operator" onClick={() => actions.ask(lift?.verb ?? "pause", schedule)}>
          {lift?.label ?? "Pause…"}
        </Button>
        <Menu label="More actions" entries={actions.entries(schedule)} />
      </div>
    </>
  );
}

/** Why it does not fire, and what lifts that. */
function Why({ schedule, actions }: { schedule: Schedule; actions: ScheduleActions }) {
  const state = stateOf(schedule);
  const lift = liftOf(schedule);
  const button = lift && (
    <Button small needs="operator" onClick={() => actions.ask(lift.verb, schedule)}>
      {lift.label}
    </Button>
  );
  if (state === "stopped") return <WhyBox title="It stopped itself" tone="bad" icon="failures" actions={button}>{`${schedule.stopped.replace(/\.$/, "")}. It fires no more until it is resumed.`}</WhyBox>;
  if (state === "paused") return <WhyBox title="It is paused" tone="heal" icon="pause" actions={button}>It fires no more until somebody resumes it. Ticks of the pause are not made up for.</WhyBox>;
  if (state === "off") return <WhyBox title="It is off" tone="heal" icon="switch" actions={button}>It was made so that it does not fire. It runs only when triggered.</WhyBox>;
  if (isLate(schedule, minuteTick.value)) return <WhyBox title="Its tick is late" tone="bad" icon="failures">Its time is over and nobody has fired it. Is a worker or a server with the scheduler up?</WhyBox>;
  return null;
}

function nextMore(schedule: Schedule) {
  if (schedule.next_at === null) return null;
  return (
    <span>
      next <TimeAgo at={schedule.next_at} />
      {schedule.timezone !== zone.value && `, your zone is ${zone.value}`}
    </span>
  );
}

function noNextText(schedule: Schedule): string {
  if (schedule.cron === null) return "It has no cron line: it runs only when triggered.";
  return schedule.enabled ? "Its line never comes again." : "It does not fire now, so there is no next run.";
}

function Gone() {
  return (
    <Card>
      <EmptyState action={<Link class="btn" to="schedules">All schedules</Link>}>No schedule has this id. It may have been deleted.</EmptyState>
    </Card>
  );
}
