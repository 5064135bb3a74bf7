import { useState } from "preact/hooks";
import { textOfError } from "../../api/errors";
import type { TaskView } from "../../api/types/tasks";
import { Check } from "../../components/Check";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { Field } from "../../components/Field";
import { Segments } from "../../components/Segments";
import { TimeAgo } from "../../components/TimeAgo";
import { toast } from "../../components/toasts";
import { parseDuration } from "../../format/durations";
import { navigate } from "../../router/location";
import { zone } from "../../state/prefs";
import { atInZone } from "../submit/moments";
import { cancelTask, deleteTask, rescheduleTask, retryTask, runTaskNow } from "./actions";

export type Asked = "cancel" | "retry" | "runNow" | "reschedule" | "remove";

interface TaskDialogProps {
  what: Asked;
  task: TaskView;
  onClose: () => void;
  onChange: () => void;
}

/** Asks before something is done to one task, and does it. */
export function TaskDialog(props: TaskDialogProps) {
  switch (props.what) {
    case "cancel":
      return <Cancel {...props} />;
    case "retry":
      return <Retry {...props} />;
    case "runNow":
      return <RunNow {...props} />;
    case "reschedule":
      return <Reschedule {...props} />;
    case "remove":
      return <Remove {...props} />;
  }
}

async function tryIt(act: () => Promise<unknown>, onChange: () => void): Promise<void> {
  try {
    await act();
  } catch (error) {
    toast({ text: textOfError(error), tone: "bad", seconds: 0 });
  }
  onChange();
}

function Cancel({ task, onClose, onChange }: TaskDialogProps) {
  const isRunning = task.status === "running";
  return (
    <ConfirmDialog
      title={isRunning ? "Stop this task" : "Cancel this task"}
      danger
      sentence={() => (isRunning ? "It is told to stop; it may still succeed." : "It will not run. Tasks that depend on it are cancelled with it.")}
      button={() => (isRunning ? "Tell it to stop" : "Cancel the task")}
      onConfirm={() => void tryIt(() => cancelTask(task), onChange)}
      onClose={onClose}
    />
  );
}

function Retry({ task, onClose, onChange }: TaskDialogProps) {
  const [cascade, setCascade] = useState(true);
  return (
    <ConfirmDialog
      title="Retry this task"
      sentence={() =>
        task.status === "success" ? (
          <>
            It succeeded at <TimeAgo at={task.finished_at} form="clock" />. Running it again repeats its effects.
          </>
        ) : (
          "It runs again with the same payload, and counts its attempts from 1."
        )
      }
      button={() => "Retry the task"}
      onConfirm={() => void tryIt(() => retryTask(task, cascade), onChange)}
      onClose={onClose}
    >
      {task.status !== "success" && (
        <Check checked={cascade} onChange={setCascade}>
          Also bring back the tasks that were cancelled because of it.
        </Check>
      )}
    </ConfirmDialog>
  );
}

function RunNow({ task, onClose, onChange }: TaskDialogProps) {
  return (
    <ConfirmDialog
      title="Run this task now"
      sentence={() => (
        <>
          It is due <TimeAgo at={task.scheduled_at} />; now it is taken as soon as a worker has room.
        </>
      )}
      button={() => "Run the task now"}
      onConfirm={() => void tryIt(() => runTaskNow(task), onChange)}
      onClose={onClose}
    />
  );
}

function Reschedule({ task, onClose, onChange }: TaskDialogProps) {
  const [how, setHow] = useState<"delay" | "at">("delay");
  const [delay, setDelay] = useState("10m");
  const [at, setAt] = useState("");
  const seconds = parseDuration(delay);
  const moment = atInZone(at, zone.value);
  const isReady = how === "delay" ? seconds !== null : moment !== null;
  const to = () => (how === "delay" ? { delay: seconds ?? 0 } : { at: moment ?? "" });
  return (
    <ConfirmDialog
      title="Reschedule this task"
      button={() => "Reschedule the task"}
      off={isReady ? null : "Say when it is to run."}
      onConfirm={() => void tryIt(() => rescheduleTask(task, to()), onChange)}
      onClose={onClose}
    >
      <Segments
        label="How the time is given"
        options={[
          { value: "delay", label: "After a while" },
          { value: "at", label: "At a time" },
        ]}
        value={how}
        onChange={setHow}
      />
      {how === "delay" ? (
        <Field label="Run it after" value={delay} onInput={setDelay} code hint="From now, for example 90s, 10m, 2h or 1d." error={seconds === null ? "Write a number with ms, s, m, h or d." : null} />
      ) : (
        <Field label="Run it at" value={at} onInput={setAt} type="datetime-local" hint={`In the zone ${zone.value}.`} />
      )}
    </ConfirmDialog>
  );
}

function Remove({ task, onClose, onChange }: TaskDialogProps) {
  const remove = async () => {
    try {
      await deleteTask(task);
      navigate("tasks");
      toast({ text: "The task is deleted." });
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad", seconds: 0 });
      onChange();
    }
  };
  return (
    <ConfirmDialog
      title="Delete this task"
      danger
      sentence={() => "All that is known of it goes: its payload, attempts, result and log. It cannot be had back."}
      button={() => "Delete the task"}
      onConfirm={() => void remove()}
      onClose={onClose}
    />
  );
}
