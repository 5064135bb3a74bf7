import { effect, signal, untracked } from "@preact/signals";
import { place } from "../router/location";
import { page } from "./page";

export interface RecentTask {
  id: string;
  type: string;
}

const MOST_TASKS = 2000;
const MOST_VIEWS = 8;

/** Tasks that this tab has shown: their tails can be searched for. */
export const recentTasks = signal<readonly RecentTask[]>([]);

/** Views call this with the rows that they show. */
export function rememberTasks(tasks: readonly RecentTask[]): void {
  const seen = new Set<string>();
  const all = [...tasks.map(({ id, type }) => ({ id, type })), ...recentTasks.peek()].filter((task) => !seen.has(task.id) && seen.add(task.id));
  recentTasks.value = all.slice(0, MOST_TASKS);
}

export interface RecentView {
  title: string;
  to: string;
}

/** Views that were open before, newest first. */
export const recentViews = signal<readonly RecentView[]>([]);

let current: RecentView | null = null;
effect(() => {
  const { path, search } = place.value;
  const title = page.value.title;
  if (!title || path === "login") return;
  const to = `${path}${search}`;
  const previous = current;
  current = { title, to };
  if (!previous || previous.to === to) return;
  const rest = untracked(() => recentViews.peek()).filter((view) => view.to !== previous.to && view.to !== to);
  recentViews.value = [previous, ...rest].slice(0, MOST_VIEWS);
});
