import { computed, effect, signal } from "@preact/signals";

export type Theme = "light" | "dark" | "system";
export type Zone = "local" | "UTC" | "schedule";
export type Density = "normal" | "compact";
export type Range = "1h" | "24h" | "7d";

export interface Prefs {
  theme: Theme;
  zone: Zone;
  density: Density;
  range: Range;
  singleKeys: boolean;
}

const STORAGE_KEY = "tickwork";
const DEFAULTS: Prefs = { theme: "system", zone: "local", density: "normal", range: "1h", singleKeys: true };
const ALLOWED: { [Name in keyof Prefs]: readonly Prefs[Name][] } = {
  theme: ["light", "dark", "system"],
  zone: ["local", "UTC", "schedule"],
  density: ["normal", "compact"],
  range: ["1h", "24h", "7d"],
  singleKeys: [true, false],
};

function pick<Name extends keyof Prefs>(stored: Partial<Record<keyof Prefs, unknown>>, name: Name): Prefs[Name] {
  return ALLOWED[name].find((value) => value === stored[name]) ?? DEFAULTS[name];
}

/** Storage may be closed, full, or hold what an older version wrote: each of these gives the defaults. */
function readPrefs(): Prefs {
  let stored: unknown = null;
  try {
    stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
  } catch {
    stored = null;
  }
  const known = (typeof stored === "object" && stored !== null ? stored : {}) as Partial<Record<keyof Prefs, unknown>>;
  return {
    theme: pick(known, "theme"),
    zone: pick(known, "zone"),
    density: pick(known, "density"),
    range: pick(known, "range"),
    singleKeys: pick(known, "singleKeys"),
  };
}

function writePrefs(prefs: Prefs): void {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(prefs));
  } catch {
    // They last as long as the page, then.
  }
}

export const prefs = signal<Prefs>(readPrefs());

export function setPref<Name extends keyof Prefs>(name: Name, value: Prefs[Name]): void {
  prefs.value = { ...prefs.value, [name]: value };
  writePrefs(prefs.value);
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = signal<"light" | "dark">(systemDark.matches ? "dark" : "light");
systemDark.addEventListener("change", () => {
  systemTheme.value = systemDark.matches ? "dark" : "light";
});

/** The theme that is drawn. */
export const theme = computed<"light" | "dark">(() => (prefs.value.theme === "system" ? systemTheme.value : prefs.value.theme));

export function toggleTheme(): void {
  setPref("theme", theme.value === "dark" ? "light" : "dark");
}

/** The zone that the page shows, by its IANA name. Views of one schedule may pass that schedule's own. */
export const zone = computed<string>(() => (prefs.value.zone === "UTC" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"));

/** The zone for a time of a schedule: its own if the reader chose so. */
export function zoneOfSchedule(own: string): string {
  return prefs.value.zone === "schedule" ? own : zone.value;
}

/** Another tab changed something: follow it. */
addEventListener("storage", (event) => {
  if (event.key === STORAGE_KEY) prefs.value = readPrefs();
});

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  document.documentElement.dataset.density = prefs.value.density;
});
