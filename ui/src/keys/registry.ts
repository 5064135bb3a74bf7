import { computed, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { prefs } from "../state/prefs";

export interface KeyBinding {
  /** One key ("j", "Enter", "*", "Shift+x"), or two after each other ("g t"). */
  keys: string;
  /** What it does, for the list of all keys. */
  text: string;
  /** The heading it stands under. */
  group: string;
  run: (event: KeyboardEvent) => void;
  /** False leaves the key to others. */
  when?: () => boolean;
}

const bindings = signal<readonly KeyBinding[]>([]);

/** For the list: the last of several bindings of the same key is the one that acts. */
export const knownKeys = computed(() => {
  const byKeys = new Map<string, KeyBinding>();
  for (const binding of bindings.value) byKeys.set(binding.keys, binding);
  return [...byKeys.values()];
});

/** Binds keys until the returned function is called. */
export function bindKeys(added: readonly KeyBinding[]): () => void {
  bindings.value = [...bindings.peek(), ...added];
  return () => {
    bindings.value = bindings.peek().filter((binding) => !added.includes(binding));
  };
}

/** Binds keys while the component is there. The bindings may be made anew on each draw. */
export function useKeys(wanted: readonly KeyBinding[]): void {
  const last = useRef(wanted);
  last.current = wanted;
  const shape = wanted.map((binding) => `${binding.keys}|${binding.text}|${binding.group}`).join("\n");
  useEffect(
    () =>
      bindKeys(
        last.current.map((binding, at) => ({
          ...binding,
          run: (event) => last.current[at]?.run(event),
          when: () => last.current[at]?.when?.() ?? true,
        })),
      ),
    [shape],
  );
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** Enter and Space belong to the button or link that has the focus. */
function isForControl(event: KeyboardEvent): boolean {
  const { target, key } = event;
  if (key !== "Enter" && key !== " ") return false;
  return target instanceof HTMLElement && ["BUTTON", "A", "SUMMARY"].includes(target.tagName);
}

const PREFIX_WAIT = 1500;
let prefix = "";
let prefixTimer = 0;

function setPrefix(key: string): void {
  prefix = key;
  clearTimeout(prefixTimer);
  if (key) prefixTimer = setTimeout(() => (prefix = ""), PREFIX_WAIT);
}

function find(keys: string): KeyBinding | undefined {
  return bindings.peek().findLast((binding) => binding.keys === keys && (binding.when?.() ?? true));
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!prefs.peek().singleKeys || isField(event.target) || isForControl(event)) return;
  if (document.querySelector("dialog[open]")) return;
  const shifted = event.shiftKey && event.key.length === 1 && /[a-z]/i.test(event.key) ? `Shift+${event.key.toLowerCase()}` : event.key;
  const binding = find(prefix ? `${prefix} ${shifted}` : shifted);
  const startsPair = !prefix && bindings.peek().some((one) => one.keys.startsWith(`${shifted} `));
  setPrefix(!binding && startsPair ? shifted : "");
  if (!binding) return;
  event.preventDefault();
  binding.run(event);
}

export function startKeys(): void {
  addEventListener("keydown", onKey);
}
