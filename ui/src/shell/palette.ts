import { signal } from "@preact/signals";
import { get } from "../api/client";
import { reasonOff } from "../components/Button";
import { quote } from "../filter/tokens";
import { isWholeId, shortId } from "../format/ids";
import type { IconName } from "../icons/paths";
import { namespace, pathOf, type QueryValues } from "../router/location";
import { pageActions } from "../state/page";
import { recentTasks, recentViews } from "../state/recent";
import { NAV_ENTRIES } from "./nav";

export interface PaletteEntry {
  label: string;
  icon: IconName;
  note?: string;
  to?: string;
  query?: QueryValues;
  run?: () => void;
  /** Shown, and why it cannot be done. */
  off?: string | null;
  mono?: boolean;
}

export interface PaletteGroup {
  title: string;
  entries: readonly PaletteEntry[];
}

export const isPaletteOpen = signal(false);

export function openPalette(): void {
  isPaletteOpen.value = true;
  void readNames();
}

interface Names {
  types: string[];
  queues: string[];
  schedules: string[];
  workers: string[];
}

/** Names of things, read once a minute at most, when the palette opens. */
export const names = signal<Names>({ types: [], queues: [], schedules: [], workers: [] });
let read = { at: 0, of: "" };

type Named = readonly { name: string }[];
type Identified = { items: readonly { id: string }[] };

/** A list that cannot be read offers nothing; places and ids still work. */
async function listed<Answer>(what: string, namesIn: (answer: Answer) => string[]): Promise<string[]> {
  try {
    return namesIn(await get<Answer>(what));
  } catch {
    return [];
  }
}

async function readNames(): Promise<void> {
  const of = namespace.peek();
  if (of === read.of && Date.now() - read.at < 60_000) return;
  read = { at: Date.now(), of };
  const namesOf = (answer: Named) => answer.map((one) => one.name);
  const idsOf = (answer: Identified) => answer.items.map((one) => one.id);
  const [types, queues, schedules, workers] = await Promise.all([listed("types", namesOf), listed("queues", namesOf), listed("schedules", idsOf), listed("workers", idsOf)]);
  if (of === namespace.peek()) names.value = { types, queues, schedules, workers };
}

const MOST_A_GROUP = 6;

function fits(text: string, label: string): boolean {
  return label.toLowerCase().includes(text);
}

function ids(text: string): PaletteEntry[] {
  if (isWholeId(text)) return [{ label: text, icon: "tasks", note: "task", to: pathOf("tasks", text), mono: true }];
  if (text.length < 4) return [];
  return recentTasks.value
    .filter((task) => task.id.endsWith(text.replace(/^…/, "")))
    .map((task) => ({ label: shortId(task.id), icon: "tasks", note: task.type, to: pathOf("tasks", task.id), mono: true }));
}

function named(kind: keyof Names, icon: IconName, note: string, to: (name: string) => Pick<PaletteEntry, "to" | "query">): (text: string) => PaletteEntry[] {
  return (text) => names.value[kind].filter((name) => fits(text, name)).map((name) => ({ label: name, icon, note, ...to(name) }));
}

const sources: readonly ((text: string) => PaletteEntry[])[] = [
  named("types", "tasks", "type", (name) => ({ to: "tasks", query: { q: `type:${quote(name)}` } })),
  named("queues", "queues", "queue", (name) => ({ to: pathOf("queues", name) })),
  named("schedules", "schedules", "schedule", (name) => ({ to: pathOf("schedules", name) })),
  named("workers", "workers", "worker", (name) => ({ to: pathOf("workers", name) })),
];

/** What the palette offers for a text: the exact id first, then actions, places and names. */
export function search(typed: string): PaletteGroup[] {
  const text = typed.trim().toLowerCase();
  const actions: PaletteEntry[] = pageActions.value
    .filter((action) => fits(text, action.label))
    .map((action) => ({ label: action.label, icon: "right", run: action.run, off: action.off ?? null, ...(action.key ? { note: action.key } : {}) }));
  const places: PaletteEntry[] = NAV_ENTRIES.filter((entry) => fits(text, entry.label)).map((entry) => ({ label: entry.label, icon: entry.icon, to: entry.to, ...(entry.key ? { note: `g ${entry.key}` } : {}) }));
  const submit: PaletteEntry[] = fits(text, "submit a task") ? [{ label: "Submit a task", icon: "plus", to: "tasks/new", off: reasonOff("submitter", null) }] : [];
  const recent: PaletteEntry[] = text ? [] : recentViews.value.map((view) => ({ label: view.title, icon: "schedules", to: view.to }));
  const found = text ? sources.flatMap((source) => source(text).slice(0, MOST_A_GROUP)) : [];
  const groups: PaletteGroup[] = [
    { title: "Ids", entries: ids(text) },
    { title: "On this page", entries: actions },
    { title: "Recent", entries: recent.slice(0, MOST_A_GROUP) },
    { title: "Places", entries: [...places, ...submit] },
    { title: "Names", entries: found },
  ];
  return groups.filter((group) => group.entries.length > 0);
}
