import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import type { Explanation, TaskValues, TaskView } from "../../api/types/tasks";
import { apiUrl, get } from "../../api/client";
import { textOfError } from "../../api/errors";
import { Button, reasonOff } from "../../components/Button";
import { CopyButton } from "../../components/CopyButton";
import { copyText } from "../../components/copy";
import { Pill, StatusPill } from "../../components/marks";
import { Menu, type MenuEntry } from "../../components/Menu";
import { toast } from "../../components/toasts";
import { useKeys } from "../../keys/registry";
import { navigate } from "../../router/location";
import { useActions } from "../../state/page";
import { session } from "../../state/session";
import { Text } from "../../text/Text";
import { allowed } from "./actions";
import { asCommand, asCurl, asPython } from "./copying";
import { type Asked, TaskDialog } from "./TaskDialog";
import { likeTask } from "./newTask";

interface HeaderProps {
  task: TaskView;
  why: Explanation | null;
  /** Something was changed: what is shown is old. */
  onChange: () => void;
}

const HELD: Readonly<Partial<Record<Explanation["reason"], string>>> = {
  queue_paused: "held by a pause",
  type_paused: "held by a pause",
  switched_off: "held by a switch",
  limit_full: "held by a limit",
  rate_spent: "held by a limit",
  breaker_open: "held by a breaker",
};

/** What holds a task on purpose, in words; null if nothing does. */
export function heldWords(task: TaskView, why: Explanation | null): string | null {
  const isWaiting = !["running", "success", "failed", "dead", "cancelled"].includes(task.status);
  if (!isWaiting) return null;
  return (why && HELD[why.reason]) ?? (task.held_by ? `held by a ${task.held_by}` : null);
}

/** The name of a task, its status, and all that can be done with it. */
export function Header({ task, why, onChange }: HeaderProps) {
  const asked = useSignal<Asked | null>(null);
  const can = allowed(task);
  const ask = (what: Asked) => {
    if (!reasonOff("operator", null)) asked.value = what;
  };
  const clone = () => navigate("tasks/new", { clone: task.id });
  const again: Asked = can.retry ? "retry" : "runNow";
  useTaskKeys({ task, can, ask, clone, again });
  const held = heldWords(task, why);
  return (
    <>
      <div class="head task-head">
        <h2>
          <Text>{task.type}</Text>
        </h2>
        <StatusPill status={task.status} ground />
        {held && <Pill tone="heal">{held}</Pill>}
        {task.cancelling && <Pill tone="heal">was asked to stop</Pill>}
        <span class="mono dim task-id no-phone">
          <Text>{task.id}</Text>
        </span>
        <span class="no-phone">
          <CopyButton text={task.id} label="Copy the id" />
        </span>
        <span class="sp" />
        <div class="btn-row no-phone">
          <Buttons can={can} ask={ask} clone={clone} />
          <Menu label="More" entries={menuOf(task, can, ask)} />
        </div>
      </div>
      <div class="acts-phone only-phone">
        <Buttons can={can} ask={ask} clone={clone} isShort />
        <Menu label="More" entries={menuOf(task, can, ask)} />
      </div>
      {asked.value && <TaskDialog what={asked.value} task={task} onClose={() => (asked.value = null)} onChange={onChange} />}
    </>
  );
}

type Can = ReturnType<typeof allowed>;

interface ButtonsProps {
  can: Can;
  ask: (what: Asked) => void;
  clone: () => void;
  isShort?: boolean;
}

function Buttons({ can, ask, clone, isShort }: ButtonsProps): ComponentChildren {
  return (
    <>
      {can.runNow && (
        <Button needs="operator" hint="r" onClick={() => ask("runNow")}>
          Run now…
        </Button>
      )}
      {can.retry && (
        <Button needs="operator" hint="r" onClick={() => ask("retry")}>
          Retry…
        </Button>
      )}
      {can.reschedule && !(isShort && can.runNow) && (
        <Button needs="operator" onClick={() => ask("reschedule")}>
          Reschedule…
        </Button>
      )}
      <Button needs="submitter" hint="e" onClick={clone}>
        {isShort ? "Clone" : "Clone and edit"}
      </Button>
      {can.cancel && (
        <Button needs="operator" danger hint="c" onClick={() => ask("cancel")}>
          Cancel…
        </Button>
      )}
    </>
  );
}

function menuOf(task: TaskView, can: Can, ask: (what: Asked) => void): MenuEntry[] {
  const copy = (what: string, text: () => string | Promise<string>) => async () => {
    try {
      await copyText(await text(), what);
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad" });
    }
  };
  const needsToken = session.value?.via !== "loopback";
  // What is too large to come with the task is read first: a copy without it would submit something else.
  const like = async () => likeTask(task, task.large.length > 0 ? await get<TaskValues>(`tasks/${encodeURIComponent(task.id)}/payload`) : task);
  return [
    ...(can.reschedule ? [{ label: "Reschedule…", needs: "operator" as const, run: () => ask("reschedule") }] : []),
    { label: "Delete…", danger: true, needs: "operator", off: can.remove ? null : "Only a task that has ended can be deleted.", run: () => ask("remove") },
    { label: "Copy the id", apart: true, note: "y", run: () => void copy("The id", () => task.id)() },
    { label: "Copy as JSON", run: () => void copy("The task", async () => JSON.stringify(await get(`tasks/${encodeURIComponent(task.id)}`), null, 2))() },
    { label: "Copy as curl", run: () => void copy("The request", async () => asCurl(await like(), apiUrl("tasks"), needsToken))() },
    { label: "Copy as CLI", run: () => void copy("The command", async () => asCommand(await like()))() },
    { label: "Copy as Python", run: () => void copy("The line", async () => asPython(await like()))() },
    { label: "Tasks of this type", apart: true, to: "tasks", query: { q: `type:${task.type}` } },
  ];
}

function useTaskKeys({ task, can, ask, clone, again }: { task: TaskView; can: Can; ask: (what: Asked) => void; clone: () => void; again: Asked }): void {
  const group = "This task";
  useKeys([
    { keys: "c", text: "Cancel it", group, when: () => can.cancel, run: () => ask("cancel") },
    { keys: "r", text: "Retry it, or run it now", group, when: () => can.retry || can.runNow, run: () => ask(again) },
    { keys: "e", text: "Clone and edit it", group, run: clone },
    { keys: "y", text: "Copy its id", group, run: () => void copyText(task.id, "The id") },
  ]);
  const off = reasonOff("operator", null);
  useActions([
    { label: "Cancel this task…", run: () => ask("cancel"), off: off ?? (can.cancel ? null : "It has ended, or was asked to stop."), key: "c" },
    { label: "Retry this task…", run: () => ask("retry"), off: off ?? (can.retry ? null : "It has not ended."), key: "r" },
    { label: "Run this task now…", run: () => ask("runNow"), off: off ?? (can.runNow ? null : "It does not wait for a time."), key: "r" },
    { label: "Reschedule this task…", run: () => ask("reschedule"), off: off ?? (can.reschedule ? null : "It does not wait for a worker or a time.") },
    { label: "Clone and edit this task", run: clone, off: reasonOff("submitter", null), key: "e" },
    { label: "Delete this task…", run: () => ask("remove"), off: off ?? (can.remove ? null : "It has not ended.") },
  ]);
}
