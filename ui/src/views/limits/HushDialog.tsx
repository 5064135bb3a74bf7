import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type End, EndField, endMistake, untilOf } from "./EndField";
import { FormDialog, NoteField, noteMistake } from "./FormDialog";

interface HushDialogProps {
  title: string;
  sentence: ComponentChildren;
  button: string;
  run: (until: string, note: string) => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
}

/** Asks for an end and a note: what is kept from others must not last for ever, nor puzzle who finds it. */
export function HushDialog({ title, sentence, button, run, onDone, onClose }: HushDialogProps) {
  const [end, setEnd] = useState<End>({ choice: "", time: "" });
  const [note, setNote] = useState("");
  const off = endMistake(end) ?? (note.trim() === "" ? "Write a note first." : noteMistake(note));
  return (
    <FormDialog title={title} sentence={sentence} button={button} off={off} run={() => run(untilOf(end) ?? "", note.trim())} onDone={onDone} onClose={onClose}>
      <EndField value={end} onChange={setEnd} />
      <NoteField value={note} onInput={setNote} />
    </FormDialog>
  );
}
