import { signal } from "@preact/signals";
import type { Tone } from "../icons/StatusShape";
import type { QueryValues } from "../router/location";

export interface ToastContent {
  text: string;
  tone?: Tone;
  /** A link to what came of it. */
  link?: { label: string; to: string; query?: QueryValues };
  /** Goes after so many seconds; 0 stays until it is closed. */
  seconds?: number;
  /** Done of all, while it goes on. */
  progress?: { done: number; total: number };
}

export interface Toast extends ToastContent {
  id: number;
  undo?: () => void;
}

export const toasts = signal<readonly Toast[]>([]);
let lastId = 0;
const timers = new Map<number, number>();

export interface ToastHandle {
  /** Shows something else in the same place. */
  update(content: ToastContent): void;
  close(): void;
}

function put(toast: Toast): void {
  const isKnown = toasts.peek().some((one) => one.id === toast.id);
  toasts.value = isKnown ? toasts.peek().map((one) => (one.id === toast.id ? toast : one)) : [...toasts.peek(), toast];
  clearTimeout(timers.get(toast.id));
  const seconds = toast.seconds ?? 6;
  if (seconds > 0) timers.set(toast.id, setTimeout(() => closeToast(toast.id), seconds * 1000));
}

export function closeToast(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}

/** Tells of something that cannot be seen elsewhere on the page. */
export function toast(content: ToastContent): ToastHandle {
  lastId += 1;
  const id = lastId;
  put({ id, ...content });
  return { update: (next) => put({ id, ...next }), close: () => closeToast(id) };
}

interface Undoable {
  /** "Cancels 412 tasks": the seconds are added. */
  text: string;
  /** Begins when the time is over; it may go on telling of its progress. */
  run: (handle: ToastHandle) => Promise<void>;
  seconds?: number;
}

/** Begins an action some seconds after it was confirmed; until then it can be taken back (`z`). */
export function runWithUndo({ text, run, seconds = 5 }: Undoable): void {
  lastId += 1;
  const id = lastId;
  const handle: ToastHandle = { update: (next) => put({ id, ...next }), close: () => closeToast(id) };
  let left = seconds;
  const undo = () => {
    clearInterval(timer);
    put({ id, text: "Nothing was changed.", seconds: 2 });
  };
  const tell = () => put({ id, text: `${text} in ${left} s.`, undo, seconds: 0 });
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) return tell();
    clearInterval(timer);
    put({ id, text: `${text} now.`, seconds: 0 });
    run(handle).catch((error: unknown) => {
      put({ id, text: error instanceof Error ? error.message : String(error), tone: "bad", seconds: 0 });
    });
  }, 1000);
  tell();
}

/** Takes back the last action that still can be. */
export function undoLast(): void {
  toasts.peek().findLast((toast) => toast.undo)?.undo?.();
}
