import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { Role } from "../api/types";
import { reasonOff } from "./Button";
import { hideTip, showTip } from "./tip";

interface SwitchProps {
  on: boolean;
  onChange: (on: boolean) => void;
  children: ComponentChildren;
  needs?: Role;
  off?: string | null;
}

/** On or off, at once. What needs a note or can do harm uses a dialog instead. */
export function Switch({ on, onChange, children, needs, off }: SwitchProps) {
  const reason = reasonOff(needs, off);
  const reasonId = useId();
  return (
    <button
      type="button"
      class="switch"
      role="switch"
      aria-checked={on}
      aria-disabled={reason ? true : undefined}
      aria-describedby={reason ? reasonId : undefined}
      onClick={() => !reason && onChange(!on)}
      onPointerEnter={(event) => reason && showTip(event.currentTarget, reason)}
      onPointerLeave={hideTip}
      onFocus={(event) => reason && event.currentTarget.matches(":focus-visible") && showTip(event.currentTarget, reason)}
      onBlur={hideTip}
    >
      <span class="track">
        <i />
      </span>
      <span>{children}</span>
      {reason && (
        <span class="sr" id={reasonId} hidden>
          {reason}
        </span>
      )}
    </button>
  );
}
