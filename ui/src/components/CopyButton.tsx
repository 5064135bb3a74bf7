import { useState } from "preact/hooks";
import { Button } from "./Button";
import { copyText } from "./copy";
import { Menu, type MenuEntry } from "./Menu";

/** Copies a text. It says so where the eye is: the icon turns into a tick. */
export function CopyButton({ text, label = "Copy", small = true }: { text: string; label?: string; small?: boolean }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    setDone(await copyText(text, label.replace(/^Copy (the )?/, "The ").replace(/^Copy$/, "It")));
    setTimeout(() => setDone(false), 1500);
  };
  return <Button kind="quiet" small={small} icon={isDone ? "tick" : "copy"} label={label} onClick={() => void copy()} />;
}

export interface CopyForm {
  /** "JSON", "curl", "CLI", "Python". */
  name: string;
  text: string | (() => string);
}

/** "Copy as": the same thing in several forms. */
export function CopyMenu({ forms, label = "Copy as" }: { forms: readonly CopyForm[]; label?: string }) {
  const entries: MenuEntry[] = forms.map((form) => ({
    label: form.name,
    run: () => void copyText(typeof form.text === "string" ? form.text : form.text(), form.name),
  }));
  return (
    <Menu label={label} entries={entries} kind="quiet" small>
      {label}
    </Menu>
  );
}
