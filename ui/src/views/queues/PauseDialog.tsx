import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { Changed } from "../../api/types/queues";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { Field } from "../../components/Field";
import { toast } from "../../components/toasts";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";

/** A queue or a type, which both can be paused. */
export interface Pausable {
  kind: "queue" | "type";
  name: string;
}

const LONGEST_NOTE = 2000;

function addressOf({ kind, name }: Pausable, act: "pause" | "resume"): string {
  return `${pathOf(kind === "queue" ? "queues" : "types", name)}/${act}`;
}

async function change(what: Pausable, act: "pause" | "resume", body: { note?: string }, onDone: () => void): Promise<void> {
  try {
    await post<Changed>(addressOf(what, act), body);
  } catch (error) {
    toast({ text: `The ${what.kind} was not changed: ${textOfError(error)}`, tone: "bad", seconds: 0 });
  }
  onDone();
}

interface PauseDialogProps {
  what: Pausable;
  onDone: () => void;
  onClose: () => void;
}

/** Asks before a pause, with room for a note: people read it where they see the pause. */
export function PauseDialog({ what, onDone, onClose }: PauseDialogProps) {
  const [note, setNote] = useState("");
  return (
    <ConfirmDialog
      title={`Pause ${what.kind}`}
      sentence={() => (
        <>
          {what.kind === "queue" ? "No task of queue " : "No task of type "}
          <b>
            <Text>{what.name}</Text>
          </b>{" "}
          starts until somebody resumes it. What runs goes on, and tasks can still be submitted.
        </>
      )}
      button={() => `Pause ${what.kind}`}
      off={note.length > LONGEST_NOTE ? "The note is too long." : null}
      onConfirm={() => void change(what, "pause", { note: note.trim() }, onDone)}
      onClose={onClose}
    >
      <Field label="Note" value={note} onInput={setNote} placeholder="database move" hint="Why, for those who find it paused. Everybody who can see this page can read it." />
    </ConfirmDialog>
  );
}

/** Resuming harms nothing that waits, so it needs no dialog. */
export function resume(what: Pausable, onDone: () => void): void {
  void change(what, "resume", {}, onDone);
}
