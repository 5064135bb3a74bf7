import { useSignal } from "@preact/signals";
import { post } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { Explanation, TaskView } from "../../api/types/tasks";
import { Button } from "../../components/Button";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { Bar } from "../../components/marks";
import { toast } from "../../components/toasts";
import { WhyBox } from "../../components/WhyBox";
import { formatPercent } from "../../format/numbers";
import type { IconName } from "../../icons/paths";
import type { Tone } from "../../icons/StatusShape";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { storeNow } from "../../state/clock";
import { zone } from "../../state/prefs";
import { Text } from "../../text/Text";
import { inZoneOfPage } from "../tasks/reasons";

/** Something that lifts what holds a task, asked before it is done. */
interface Lift {
  label: string;
  title: string;
  sentence: string;
  button: string;
  run: () => Promise<unknown>;
}

interface Look {
  tone: Tone;
  icon: IconName;
  /** Where to look at what is in the way. */
  go?: { label: string; to: string };
  lift?: Lift;
}

function ruleName(rule: string): string {
  return rule.includes(":") ? rule.slice(rule.indexOf(":") + 1) : rule;
}

function pauseLook(kind: "queue" | "type", name: string): Look {
  const of = `${kind} ${name}`;
  const lift = { label: `Resume ${kind}…`, title: `Resume ${of}`, sentence: `All tasks of ${of} start again, not only this one.`, button: `Resume ${of}`, run: () => post(`${kind}s/${encodeURIComponent(name)}/resume`) };
  return { tone: "heal", icon: "pause", go: { label: kind === "queue" ? "Queue" : "Tasks of this type", to: kind === "queue" ? pathOf("queues", name) : `tasks?q=type:${encodeURIComponent(name)}` }, lift };
}

function ruleLook(kind: "breaker" | "switch", rule: string): Look {
  const name = ruleName(rule);
  if (kind === "breaker") {
    const lift = { label: "Close breaker…", title: `Close breaker ${name}`, sentence: "Its tasks are let through again, and failures count from 0.", button: "Close the breaker", run: () => post("breakers/close", { of: rule }) };
    return { tone: "heal", icon: "breaker", go: { label: "Breaker", to: pathOf("limits", "breakers", rule) }, lift };
  }
  const lift = { label: "Switch on…", title: `Switch on ${rule.replace(":", " ")}`, sentence: "Its tasks start again, not only this one.", button: "Switch it on", run: () => post("switches/on", { of: rule }) };
  return { tone: "heal", icon: "switch", go: { label: "Switches", to: "limits" }, lift };
}

function lookOf(task: TaskView, why: Explanation): Look {
  const first = why.blockers[0] ?? "";
  switch (why.reason) {
    case "queue_paused":
      return pauseLook("queue", first);
    case "type_paused":
      return pauseLook("type", first);
    case "breaker_open":
      return ruleLook("breaker", first);
    case "switched_off":
      return ruleLook("switch", first);
    case "limit_full":
    case "rate_spent":
      return { tone: "heal", icon: "limits", go: { label: "Limit", to: "limits" } };
    case "blocked":
      return { tone: "rest", icon: "tasks", ...(why.blockers.length === 1 ? { go: { label: "Task before it", to: pathOf("tasks", first) } } : {}) };
    case "not_due":
      return { tone: "rest", icon: "schedules" };
    case "retry_not_due":
      return { tone: "heal", icon: "dst" };
    case "no_worker":
    case "queue_unserved":
    case "type_unknown":
    case "labels_missing":
      return { tone: "bad", icon: "lost", go: { label: "Workers", to: "workers" } };
    case "worker_lost":
      return { tone: "heal", icon: "lost", go: { label: "Workers", to: "workers" } };
    case "running":
    case "stopping":
    case "assigned":
      return { tone: "play", icon: "play", ...(first ? { go: { label: "Worker", to: pathOf("workers", first) } } : {}) };
    case "workers_busy":
    case "workers_draining":
      return { tone: "play", icon: "workers", go: { label: "Workers", to: "workers" } };
    case "ended":
      return { tone: task.status === "success" ? "good" : task.status === "cancelled" ? "rest" : "bad", icon: "failures" };
    default:
      return { tone: "play", icon: "queues", go: { label: "Queue", to: pathOf("queues", task.queue) } };
  }
}

const TITLES: Readonly<Partial<Record<Explanation["reason"], string>>> = { running: "It is running", stopping: "It was asked to stop", worker_lost: "Its worker is lost", assigned: "A worker has it" };

/** Why a task is not running, and the one thing that lifts it. Of one that runs, how far it is. */
export function Why({ task, why, onChange }: { task: TaskView; why: Explanation | null; onChange: () => void }) {
  const isAsking = useSignal(false);
  if (!why || task.status === "success" || task.status === "cancelled" || (why.reason === "ended" && !task.last_error)) return null;
  const look = lookOf(task, why);
  const { go, lift } = look;
  const title = why.reason === "ended" ? (task.status === "dead" ? "Why it is dead" : "Why it failed") : (TITLES[why.reason] ?? "Why it is not running");
  const act = async () => {
    try {
      await lift?.run();
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad", seconds: 0 });
    }
    onChange();
  };
  return (
    <>
      <WhyBox
        title={title}
        tone={look.tone}
        icon={look.icon}
        actions={
          (go || lift) && (
            <>
              {go && (
                <Link class="btn sm" to={go.to}>
                  {go.label}
                </Link>
              )}
              {lift && (
                <Button small needs="operator" onClick={() => (isAsking.value = true)}>
                  {lift.label}
                </Button>
              )}
            </>
          )
        }
      >
        {textOf(task, why)}
      </WhyBox>
      {task.status === "running" && task.progress !== null && <Progress share={task.progress} note={task.progress_note} />}
      {isAsking.value && lift && (
        <ConfirmDialog title={lift.title} sentence={() => lift.sentence} button={() => lift.button} onConfirm={() => void act()} onClose={() => (isAsking.value = false)} />
      )}
    </>
  );
}

function textOf(task: TaskView, why: Explanation): string {
  if (why.reason === "ended") return task.last_error?.split("\n", 1)[0] ?? why.text;
  return inZoneOfPage(why.text, zone.value, storeNow());
}

function Progress({ share, note }: { share: number; note: string }) {
  return (
    <div class="task-progress">
      <Bar share={share} wide label={`${formatPercent(share)} done`} />
      <span class="nw">{formatPercent(share)}</span>
      {note && (
        <span class="mid cut">
          <Text>{note}</Text>
        </span>
      )}
    </div>
  );
}
