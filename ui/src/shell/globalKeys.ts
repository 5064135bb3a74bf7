import { undoLast } from "../components/toasts";
import { bindKeys, type KeyBinding } from "../keys/registry";
import { isPaused, setPaused } from "../live/stream";
import { goUp, navigate } from "../router/location";
import { toggleTheme } from "../state/prefs";
import { isKeysOpen } from "./KeysDialog";
import { NAV_ENTRIES } from "./nav";
import { isPaletteOpen, openPalette } from "./palette";

const group = "Everywhere";

const EVERYWHERE: readonly KeyBinding[] = [
  { keys: "p", text: "Pause live updates, or go on", group, run: () => setPaused(!isPaused.peek()) },
  { keys: "z", text: "Undo what has not begun yet", group, run: undoLast },
  { keys: "u", text: "Up, to the list", group, run: goUp },
  { keys: "d", text: "Light or dark", group, run: toggleTheme },
  { keys: "?", text: "All keys", group, run: () => (isKeysOpen.value = true) },
];

const PLACES: readonly KeyBinding[] = NAV_ENTRIES.filter((entry) => entry.key !== "").map((entry) => ({
  keys: `g ${entry.key}`,
  text: entry.label,
  group: "Go to",
  run: () => navigate(entry.to),
}));

/** Ctrl K is no single key: it acts in fields too, and cannot be switched off. */
function onPaletteKey(event: KeyboardEvent): void {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (isPaletteOpen.peek()) isPaletteOpen.value = false;
  else openPalette();
}

export function bindGlobalKeys(): void {
  bindKeys([...PLACES, ...EVERYWHERE]);
  addEventListener("keydown", onPaletteKey);
}
