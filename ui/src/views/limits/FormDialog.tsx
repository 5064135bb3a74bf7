import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { textOfError } from "../../api/errors";
import { Banner } from "../../components/Banner";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";

interface FormDialogProps {
  title: string;
  /** What happens, in words. */
  sentence?: ComponentChildren;
  children?: ComponentChildren;
  /** The verb and its object. */
  button: string;
  /** Why it cannot be done yet. */
  off?: string | null;
  /** Another way out, left of the buttons. */
  extra?: ComponentChildren;
  run: () => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
}

/** Asks for what an action needs. It stays open when the server refuses, with its words. */
export function FormDialog({ title, sentence, children, button, off, extra, run, onDone, onClose }: FormDialogProps) {
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    try {
      await run();
      onDone();
      onClose();
    } catch (error) {
      setProblem(textOfError(error));
      setBusy(false);
    }
  };
  const reason = isBusy ? "It is being done." : (off ?? null);
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!reason) void act();
        }}
      >
        <div class="in">
          {problem && <Banner tone="bad">{problem}</Banner>}
          {sentence && <p>{sentence}</p>}
          {children}
        </div>
        <div class="acts">
          {extra}
          {extra && <span class="sp" />}
          <Button onClick={onClose} autoFocus={!children}>
            Back
          </Button>
          <Button kind="prime" type="submit" needs="operator" off={reason}>
            {button}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Why something is ended: nothing is left to show it at, so that it is kept in the audit log alone. */
export function AuditNoteField({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  return <Field label="Note" value={value} onInput={onInput} hint="Why, for the audit log. It may stay empty." error={noteMistake(value)} />;
}

const LONGEST_NOTE = 300;

export function noteMistake(note: string): string | null {
  return note.length > LONGEST_NOTE ? `A note has at most ${LONGEST_NOTE} letters.` : null;
}

/** Why, for those who find it later. */
export function NoteField({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  return <Field label="Note" value={value} onInput={onInput} hint="Why, for those who find it later. Everybody sees it." error={noteMistake(value)} />;
}
