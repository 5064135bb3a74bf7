import type { ComponentChildren, Ref } from "preact";
import { useId } from "preact/hooks";
import type { Role } from "../api/types";
import { reasonOffline } from "../api/reach";
import { Icon } from "../icons/Icon";
import type { IconName } from "../icons/paths";
import { reasonAgainst } from "../state/session";
import { hideTip, showTip } from "./tip";

export interface ButtonProps {
  children?: ComponentChildren;
  onClick?: () => void;
  kind?: "plain" | "prime" | "quiet";
  danger?: boolean;
  small?: boolean;
  icon?: IconName;
  /** Words for a button that shows only an icon. */
  label?: string;
  /** The key that does the same, shown as a hint. */
  hint?: string;
  /** The least role; without it the button is visible, off, and says why. */
  needs?: Role;
  /** Why it is off now; null or "" for on. */
  off?: string | null;
  type?: "button" | "submit";
  class?: string;
  expanded?: boolean;
  pressed?: boolean;
  hasPopup?: "menu" | "dialog" | "listbox";
  buttonRef?: Ref<HTMLButtonElement>;
  autoFocus?: boolean;
}

/** Why an action cannot be done now: no right, no store, or a reason of its own. */
export function reasonOff(needs: Role | undefined, off: string | null | undefined): string | null {
  if (needs) {
    const reason = reasonAgainst(needs) ?? reasonOffline.value;
    if (reason) return reason;
  }
  return off || null;
}

function classesOf({ kind = "plain", danger, small, icon, children, class: extra }: ButtonProps): string {
  const names = ["btn"];
  if (kind !== "plain") names.push(kind);
  if (danger) names.push("danger");
  if (small) names.push("sm");
  if (icon && !children) names.push("icon");
  if (extra) names.push(extra);
  return names.join(" ");
}

/** A button. Where it is off it stays in the tab order and tells the reason, so that nobody has to guess. */
export function Button(props: ButtonProps) {
  const { children, onClick, icon, label, hint, needs, off, type = "button" } = props;
  const reason = reasonOff(needs, off);
  const reasonId = useId();
  const tip = reason ?? (children ? null : label);
  return (
    <>
      <button
        type={type}
        class={classesOf(props)}
        ref={props.buttonRef}
        aria-label={label}
        aria-disabled={reason ? true : undefined}
        aria-describedby={reason ? reasonId : undefined}
        aria-expanded={props.expanded}
        aria-pressed={props.pressed}
        aria-haspopup={props.hasPopup}
        autoFocus={props.autoFocus}
        onClick={(event) => {
          if (reason) event.preventDefault();
          else onClick?.();
        }}
        onPointerEnter={(event) => tip && event.pointerType === "mouse" && showTip(event.currentTarget, tip)}
        onPointerLeave={hideTip}
        onFocus={(event) => tip && event.currentTarget.matches(":focus-visible") && showTip(event.currentTarget, tip)}
        onBlur={hideTip}
      >
        {icon && <Icon name={icon} />}
        {children}
        {hint && <kbd class="no-phone">{hint}</kbd>}
      </button>
      {reason && (
        <span class="sr" id={reasonId}>
          {reason}
        </span>
      )}
    </>
  );
}
