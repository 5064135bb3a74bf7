import { useEffect, useState } from "preact/hooks";
import type { Attention } from "../../api/types/overview";
import { markOf, marksLeft, readMarks, splitRows } from "./dismissed";

function stored(key: string): readonly string[] {
  try {
    return readMarks(localStorage.getItem(key));
  } catch {
    return [];
  }
}

function store(key: string, marks: readonly string[]): void {
  try {
    if (marks.length > 0) localStorage.setItem(key, JSON.stringify(marks));
    else localStorage.removeItem(key);
  } catch {
    // They last as long as the view, then.
  }
}

/** The rows that this browser's reader has dismissed, and the others. The namespace must stay the same. */
export function useDismissed(namespace: string, rows: readonly Attention[]) {
  const key = `tickwork.dismissed.${namespace}`;
  const [marks, setMarks] = useState(() => stored(key));
  const change = (next: readonly string[]) => {
    setMarks(next);
    store(key, next);
  };
  useEffect(() => {
    const follow = (event: StorageEvent) => event.key === key && setMarks(readMarks(event.newValue));
    addEventListener("storage", follow);
    return () => removeEventListener("storage", follow);
  }, []);
  useEffect(() => {
    const left = marksLeft(rows, marks);
    if (left !== marks) change(left);
  }, [rows]);
  return {
    ...splitRows(rows, marks),
    dismiss: (row: Attention) => change([...marks, markOf(row)]),
    bringBack: (row: Attention) => change(marks.filter((mark) => mark !== markOf(row))),
  };
}
