import { useRef } from "preact/hooks";
import { textOfError } from "../../api/errors";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { runWithUndo } from "../../components/toasts";
import { tokenText } from "../../filter/tokens";
import { shortId } from "../../format/ids";
import { plural } from "../../format/numbers";
import { plainText } from "../../text/split";
import { type GroupAction, previewGroup, runGroup } from "./bulk";

interface GroupDialogProps {
  wanted: GroupAction;
  /** The name of the error, for the sentence. */
  error: string;
  types: readonly string[];
  onDone: () => void;
  onClose: () => void;
}

function sentenceOf(wanted: GroupAction, error: string, count: number): string {
  const what = plural(count, "dead letter");
  if (wanted.action === "delete") return `Remove ${what} of ${error} for good. Nothing of ${count === 1 ? "it" : "them"} is kept.`;
  const pace = wanted.rate ? `, at most ${plural(wanted.rate, "task")} a second` : "";
  return `Retry ${what} of ${error}${pace}. Attempts start again from 1; what ${count === 1 ? "it has" : "they have"} done before may be done again.`;
}

/** Asks before all dead letters of a group are sent back or removed, with what the server would touch. */
export function GroupDialog({ wanted, error, types, onDone, onClose }: GroupDialogProps) {
  const handle = useRef("");
  const isRemoval = wanted.action === "delete";
  const verb = isRemoval ? "Remove" : "Retry";
  const name = plainText(error);
  const preview = async (signal: AbortSignal) => {
    const found = await previewGroup(wanted, signal);
    handle.current = found.preview;
    return {
      count: found.count,
      at_least: found.at_least,
      samples: found.samples.map((task) => `${task.type} ${shortId(task.id)}${task.key ? ` ${task.key}` : ""}`),
      moment: found.moment,
    };
  };
  const link = isRemoval ? undefined : { label: `Show tasks of type ${plainText(types.join(", "))}`, to: "tasks", query: { q: tokenText("type", types) } };
  const confirm = (count: number) =>
    runWithUndo({
      text: `${verb === "Retry" ? "Retries" : "Removes"} ${plural(count, "task")}`,
      run: async (toast) => {
        try {
          await runGroup(wanted, handle.current, toast, link);
        } catch (problem) {
          toast.update({ text: textOfError(problem), tone: "bad", seconds: 0 });
        } finally {
          onDone();
        }
      },
    });
  return (
    <ConfirmDialog
      title={`${verb} dead letters of ${name}`}
      danger={isRemoval}
      removes={isRemoval}
      preview={preview}
      sentence={(count) => (count === 0 ? `No dead letter of ${name} is left.` : sentenceOf(wanted, name, count))}
      button={(count) => `${verb} ${plural(count, "task")}`}
      onConfirm={(found) => found && found.count > 0 && confirm(found.count)}
      onClose={onClose}
    />
  );
}
