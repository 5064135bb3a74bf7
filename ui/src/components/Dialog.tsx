import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { openLayers } from "../state/interaction";
import { Text } from "../text/Text";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** The buttons; the first that should have the focus is marked `autoFocus`. */
  actions?: ComponentChildren;
  wide?: boolean;
  class?: string;
  /** The title is for readers only. */
  hideTitle?: boolean;
}

/** A window over the page. The browser keeps the focus inside; Esc and a click beside it close it. */
export function Dialog({ title, onClose, children, actions, wide, class: extra, hideTitle }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    openLayers.value += 1;
    return () => {
      openLayers.value -= 1;
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const classes = [wide && "wide", extra].filter(Boolean).join(" ");
  return (
    <dialog
      ref={element}
      class={classes || undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => event.target === element.current && onClose()}
    >
      <h2 class={hideTitle ? "sr" : "dialog-title"} id={id}>
        <Text>{title}</Text>
      </h2>
      {children}
      {actions && <div class="acts">{actions}</div>}
    </dialog>
  );
}
