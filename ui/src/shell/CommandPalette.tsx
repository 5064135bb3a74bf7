import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { Icon } from "../icons/Icon";
import { navigate } from "../router/location";
import { pageActions } from "../state/page";
import { Text } from "../text/Text";
import { isPaletteOpen, names, type PaletteEntry, search } from "./palette";

/** Ctrl K: goes anywhere, and does what can be done here. */
export function CommandPalette() {
  if (!isPaletteOpen.value) return null;
  return <Palette close={() => (isPaletteOpen.value = false)} />;
}

function Palette({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const groups = useMemo(() => search(text), [text, names.value, pageActions.value]);
  const entries = groups.flatMap((group) => group.entries);
  useEffect(() => setAt(0), [text]);
  useEffect(() => document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);

  const take = (entry: PaletteEntry | undefined) => {
    if (!entry || entry.off) return;
    close();
    if (entry.to !== undefined) navigate(entry.to, entry.query);
    else entry.run?.();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(entries.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") take(entries[at]);
    else return;
    event.preventDefault();
  };
  let index = -1;
  return (
    <Dialog title="Search or jump to" hideTitle class="palette" onClose={close}>
      <div class="q">
        <Icon name="search" />
        <input
          autoFocus
          value={text}
          role="combobox"
          aria-label="Search or jump to"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={entries.length > 0 ? `${id}-${at}` : undefined}
          placeholder="A place, a name, a whole id"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      {entries.length === 0 ? (
        <p class="none">Nothing has this name. Tasks are found by their whole id, or by a filter in Tasks.</p>
      ) : (
        <ul role="listbox" id={id} aria-label="Results">
          {groups.map((group) => (
            <li key={group.title} role="presentation">
              <div class="g" id={`${id}-${group.title}`}>
                {group.title}
              </div>
              <ul role="group" aria-labelledby={`${id}-${group.title}`} style={{ maxHeight: "none", padding: "0" }}>
                {group.entries.map((entry) => {
                  index += 1;
                  const own = index;
                  return <Option key={own} id={`${id}-${own}`} entry={entry} isChosen={own === at} onHover={() => setAt(own)} onTake={() => take(entry)} />;
                })}
              </ul>
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}

interface OptionProps {
  id: string;
  entry: PaletteEntry;
  isChosen: boolean;
  onHover: () => void;
  onTake: () => void;
}

function Option({ id, entry, isChosen, onHover, onTake }: OptionProps) {
  return (
    <li class="o" role="option" id={id} aria-selected={isChosen} aria-disabled={entry.off ? true : undefined} onPointerMove={onHover} onClick={onTake}>
      <Icon name={entry.icon} />
      <span class={entry.mono ? "mono" : undefined}>
        <Text>{entry.label}</Text>
      </span>
      <span class="n">{entry.off ?? entry.note}</span>
    </li>
  );
}
