import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Role } from "../api/types";
import { Icon } from "../icons/Icon";
import type { IconName } from "../icons/paths";
import { Link } from "../router/Link";
import type { QueryValues } from "../router/location";
import { openLayers } from "../state/interaction";
import { Button, reasonOff } from "./Button";

export interface MenuEntry {
  label: ComponentChildren;
  run?: () => void;
  /** A place instead of an act. */
  to?: string;
  query?: QueryValues;
  icon?: IconName;
  danger?: boolean;
  needs?: Role;
  off?: string | null;
  /** A number or a key at the right. */
  note?: string;
  /** Set for an entry that is one of a choice. */
  checked?: boolean;
  /** A line above it. */
  apart?: boolean;
}

interface MenuProps {
  /** What the menu is, for readers. */
  label: string;
  entries: readonly MenuEntry[];
  /** What the button shows; without it three dots. */
  children?: ComponentChildren;
  kind?: "plain" | "prime" | "quiet";
  small?: boolean;
  icon?: IconName;
  /** A button of one's own in place of the usual one. */
  trigger?: (props: { open: () => void; isOpen: boolean; ref: (element: HTMLElement | null) => void }) => ComponentChildren;
}

function place(menu: HTMLElement, anchor: HTMLElement): void {
  const box = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = box.left + width > innerWidth - 8 ? box.right - width : box.left;
  const top = box.bottom + 4 + height > innerHeight - 8 && box.top > height + 12 ? box.top - height - 4 : box.bottom + 4;
  menu.style.left = `${Math.max(8, left)}px`;
  menu.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
}

function itemsOf(menu: HTMLElement): HTMLElement[] {
  return [...menu.querySelectorAll<HTMLElement>("[role^=menuitem]")];
}

/** Moves the focus among the entries: arrows, Home, End, and the first letter. */
function moveFocus(event: KeyboardEvent, menu: HTMLElement): void {
  const items = itemsOf(menu);
  const at = items.indexOf(document.activeElement as HTMLElement);
  let next = -1;
  if (event.key === "ArrowDown") next = (at + 1) % items.length;
  else if (event.key === "ArrowUp") next = (at - 1 + items.length) % items.length;
  else if (event.key === "Home") next = 0;
  else if (event.key === "End") next = items.length - 1;
  else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
    const letter = event.key.toLowerCase();
    const after = [...items.slice(at + 1), ...items.slice(0, at + 1)];
    next = items.indexOf(after.find((item) => item.textContent?.trim().toLowerCase().startsWith(letter)) ?? items[at]!);
  } else return;
  event.preventDefault();
  event.stopPropagation();
  items[next]?.focus();
}

/** A button with a list of things to do or to choose. */
export function Menu({ label, entries, children, kind, small, icon, trigger }: MenuProps) {
  const anchor = useRef<HTMLElement | null>(null);
  const menu = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const open = () => menu.current?.togglePopover();
  const onToggle = (event: { newState: string }) => {
    const nowOpen = event.newState === "open";
    setOpen(nowOpen);
    openLayers.value += nowOpen ? 1 : -1;
  };
  useLayoutEffect(() => {
    // Only now are the entries there, and with them the size.
    if (!isOpen || !menu.current || !anchor.current) return;
    place(menu.current, anchor.current);
    itemsOf(menu.current)[0]?.focus();
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Tab") menu.current?.hidePopover();
    else if (menu.current) moveFocus(event, menu.current);
  };
  const leave = () => {
    menu.current?.hidePopover();
    anchor.current?.focus();
  };
  const setAnchor = (element: HTMLElement | null) => {
    anchor.current = element;
  };
  return (
    <span>
      {trigger?.({ open, isOpen, ref: setAnchor }) ?? (
        <Button kind={kind ?? "plain"} small={small ?? false} icon={children ? icon : (icon ?? "more")} label={children ? undefined : label} hasPopup="menu" expanded={isOpen} onClick={open} buttonRef={setAnchor}>
          {children && (
            <>
              {children}
              <Icon name="down" />
            </>
          )}
        </Button>
      )}
      <div class="menu" popover="auto" role="menu" aria-label={label} id={id} ref={menu} onToggle={onToggle} onKeyDown={onKeyDown}>
        {isOpen && entries.map((entry, at) => <Entry entry={entry} key={at} leave={leave} />)}
      </div>
    </span>
  );
}

function Entry({ entry, leave }: { entry: MenuEntry; leave: () => void }) {
  const reason = reasonOff(entry.needs, entry.off);
  const body = (
    <>
      {entry.checked !== undefined && <Icon name="tick" class={entry.checked ? "" : "off-mark"} />}
      {entry.icon && <Icon name={entry.icon} />}
      <span>
        {entry.label}
        {reason && <span class="reason">{reason}</span>}
      </span>
      {entry.note && <span class="n">{entry.note}</span>}
    </>
  );
  const classes = entry.danger ? "menu-item danger" : "menu-item";
  const line = entry.apart ? <hr /> : null;
  if (entry.to !== undefined && !reason) {
    return (
      <>
        {line}
        <Link class={classes} role="menuitem" to={entry.to} query={entry.query} onClick={leave}>
          {body}
        </Link>
      </>
    );
  }
  const act = () => {
    if (reason) return;
    leave();
    entry.run?.();
  };
  return (
    <>
      {line}
      <button
        type="button"
        class={classes}
        role={entry.checked === undefined ? "menuitem" : "menuitemcheckbox"}
        aria-checked={entry.checked}
        aria-disabled={reason ? true : undefined}
        onClick={act}
      >
        {body}
      </button>
    </>
  );
}
