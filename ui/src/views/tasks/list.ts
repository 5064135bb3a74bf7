import { type ReadonlySignal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../../api/client";
import { type Resource, useResource, withQuery } from "../../api/resource";
import type { Event } from "../../api/types";
import type { TaskPage, TaskRow } from "../../api/types/tasks";
import { toast } from "../../components/toasts";
import { textOfError } from "../../api/errors";
import { latestById, useEvents, useTopics } from "../../live/hooks";
import { rememberTasks } from "../../state/recent";
import { isEnded, isGone, judgeOf, rowAfter } from "./live";
import { idFilters } from "./ids";

export const PAGE_SIZE = 100;
const MOST_FRESH = 100_000;
/** Requests that follow a short page by themselves. */
const MOST_STEPS = 6;
const MOST_ASKED = 40;
const ASK_EVERY = 2000;
const REREAD_AFTER = 1000;
const REREAD_RUNNING_EVERY = 5000;

interface Later {
  /** The first page that these follow. */
  of: number;
  rows: readonly TaskRow[];
  cursor: string | null;
  looked: number;
}

export interface Changes {
  /** Tasks that would be in the list by now. */
  entered: number;
  /** Rows that would no longer be. */
  left: number;
  /** There may be more of them: they came faster than the server could be asked whether they match. */
  isBound: boolean;
}

export interface TaskList {
  first: Resource<TaskPage>;
  rows: ReadonlySignal<readonly TaskRow[]>;
  /** Where the next page begins; null at the end. */
  cursor: ReadonlySignal<string | null>;
  looked: ReadonlySignal<number>;
  changes: ReadonlySignal<Changes>;
  isLoadingMore: ReadonlySignal<boolean>;
  loadMore(): Promise<void>;
  refresh(): void;
}

/** The tasks that a filter matches: page after page, rows that follow the stream in place, and a count of what is new. */
export function useTaskList(filter: () => string): TaskList {
  const first = useResource<TaskPage>(() => withQuery("tasks", { q: filter(), limit: PAGE_SIZE }));
  const later = useSignal<Later | null>(null);
  const isLoadingMore = useSignal(false);
  const entered = useSignal<ReadonlySet<string>>(new Set());
  const left = useSignal<ReadonlySet<string>>(new Set());
  const isBound = useSignal(false);
  const followed = useComputed(() => (later.value?.of === first.readAt.value ? later.value : null));
  const rows = useComputed(() => [...(first.data.value?.items ?? []), ...(followed.value?.rows ?? [])]);
  const cursor = useComputed(() => (followed.value ? followed.value.cursor : (first.data.value?.cursor ?? null)));
  const looked = useComputed(() => (first.data.value?.looked ?? 0) + (followed.value?.looked ?? 0));
  const changes = useComputed<Changes>(() => ({ entered: entered.value.size, left: left.value.size, isBound: isBound.value }));

  const readAt = first.readAt.value;
  useEffect(() => {
    entered.value = new Set();
    left.value = new Set();
    isBound.value = false;
    rememberTasks(rows.peek());
    void fill(readAt);
  }, [readAt]);

  const change = (update: (row: TaskRow) => TaskRow) => {
    first.update((page) => ({ ...page, items: page.items.map(update) }));
    if (followed.peek()) later.value = { ...followed.peek()!, rows: followed.peek()!.rows.map(update) };
  };

  const loadMore = async () => {
    const from = cursor.peek();
    if (from === null || isLoadingMore.peek()) return;
    isLoadingMore.value = true;
    const of = first.readAt.peek();
    try {
      const page = await get<TaskPage>("tasks", { query: { q: filter(), limit: PAGE_SIZE, cursor: from } });
      const before = followed.peek();
      const known = new Set(rows.peek().map((row) => row.id));
      // Lists of waiting tasks shift between two pages: what was shown before is not shown again.
      const added = page.items.filter((row) => !known.has(row.id));
      later.value = { of, rows: [...(before?.rows ?? []), ...added], cursor: page.cursor, looked: (before?.looked ?? 0) + page.looked };
      rememberTasks(added);
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad" });
    } finally {
      isLoadingMore.value = false;
    }
  };

  // One request looks at a bounded number of tasks, so a page may be short: a few more are asked for before it is left to the reader.
  const fill = async (of: number) => {
    for (let step = 0; step < MOST_STEPS; step += 1) {
      if (of === 0 || of !== first.readAt.peek() || rows.peek().length >= PAGE_SIZE || cursor.peek() === null) return;
      await loadMore();
    }
  };

  useLiveRows({ filter, rows, readAt: first.readAt, entered, left, isBound, change });
  return { first, rows, cursor, looked, changes, isLoadingMore, loadMore, refresh: () => void first.refresh() };
}

interface Kept<Value> {
  value: Value;
  peek(): Value;
}

interface LiveRows {
  filter: () => string;
  rows: ReadonlySignal<readonly TaskRow[]>;
  readAt: ReadonlySignal<number>;
  entered: Kept<ReadonlySet<string>>;
  left: Kept<ReadonlySet<string>>;
  isBound: Kept<boolean>;
  change(update: (row: TaskRow) => TaskRow): void;
}

/** Draws facts into rows that are on the page, and counts those of tasks that are not. */
function useLiveRows(list: LiveRows): void {
  const stale = useRef(new Set<string>());
  const timer = useRef(0);
  const askWhether = useCandidates(list);
  useTopics("task");

  const reread = async () => {
    timer.current = 0;
    const ids = [...stale.current].slice(0, PAGE_SIZE);
    stale.current.clear();
    const answers = await Promise.all(idFilters(ids).map((q) => get<TaskPage>("tasks", { query: { q } }))).catch(() => []);
    const found = new Map(answers.flatMap((page) => page.items).map((row) => [row.id, row]));
    if (found.size > 0) list.change((row) => found.get(row.id) ?? row);
  };
  const rereadSoon = (ids: Iterable<string>) => {
    for (const id of ids) stale.current.add(id);
    if (stale.current.size > 0 && !timer.current) timer.current = setTimeout(() => void reread(), REREAD_AFTER);
  };

  useEvents((events) => {
    const known = new Map(list.rows.peek().map((row) => [row.id, row]));
    const latest = latestById(events.filter((event) => event.kind.startsWith("task.")));
    const hits = [...latest].filter(([id]) => known.has(id));
    if (hits.length > 0) {
      list.change((row) => {
        const event = latest.get(row.id);
        return event ? rowAfter(row, event) : row;
      });
      countLeft(list, hits);
      // A fact does not say why a task waits; the list does.
      rereadSoon(hits.map(([id]) => id).filter((id) => list.rows.peek().some((row) => row.id === id && !isEnded(row.status) && row.status !== "running")));
    }
    countEntered(list, latest, known, askWhether);
  });

  useEffect(() => {
    // Progress makes no facts.
    const running = setInterval(() => {
      if (document.hidden) return;
      rereadSoon(list.rows.peek().filter((row) => row.status === "running").slice(0, 40).map((row) => row.id));
    }, REREAD_RUNNING_EVERY);
    return () => {
      clearInterval(running);
      clearTimeout(timer.current);
    };
  }, []);
}

function countEntered(list: LiveRows, latest: Map<string, Event>, known: ReadonlyMap<string, TaskRow>, askWhether: (ids: readonly string[]) => void): void {
  const before = list.entered.peek();
  if (list.readAt.peek() === 0 || before.size >= MOST_FRESH) return;
  const judge = judgeOf(list.filter(), list.readAt.peek());
  const added = [...latest].filter(([id, event]) => !known.has(id) && !before.has(id) && judge.mayEnter(event)).map(([id]) => id);
  if (!judge.isExact) return askWhether(added);
  const removed = [...latest].filter(([id, event]) => before.has(id) && !judge.mayEnter(event) && event.kind !== "task.submitted");
  if (added.length === 0 && removed.length === 0) return;
  const next = new Set([...before, ...added]);
  for (const [id] of removed) next.delete(id);
  list.entered.value = next;
}

/** Of tasks that facts alone cannot judge, asks the server which match: a few at a time, and not often. */
function useCandidates(list: LiveRows): (ids: readonly string[]) => void {
  const waiting = useRef(new Set<string>());
  const timer = useRef(0);
  const ask = async () => {
    timer.current = 0;
    const ids = [...waiting.current].slice(0, MOST_ASKED);
    if (waiting.current.size > ids.length) list.isBound.value = true;
    waiting.current.clear();
    const of = list.readAt.peek();
    const pages = await Promise.all(idFilters(ids).map((named) => get<TaskPage>("tasks", { query: { q: `${list.filter()} ${named}` } }))).catch(() => []);
    const found = pages.flatMap((page) => page.items).map((row) => row.id);
    if (found.length > 0 && of === list.readAt.peek()) list.entered.value = new Set([...list.entered.peek(), ...found]);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (ids) => {
    for (const id of ids) waiting.current.add(id);
    if (waiting.current.size > 0 && !timer.current) timer.current = setTimeout(() => void ask(), ASK_EVERY);
  };
}

function countLeft(list: LiveRows, hits: readonly [string, Event][]): void {
  const judge = judgeOf(list.filter(), 0);
  const next = new Set(list.left.peek());
  for (const [id, event] of hits) {
    if (isGone(event.kind) || !judge.mayEnter(event)) next.add(id);
    else next.delete(id);
  }
  if (next.size !== list.left.peek().size) list.left.value = next;
}
