import type { Attention } from "../../api/types/overview";

/** Kinds whose moment is their begin. That of others changes while they last. */
const BEGIN: readonly Attention["kind"][] = ["alert", "schedule", "queue", "type", "worker", "switch"];

/** What a dismissed row is known by. With another title or level it is news, and so is one that began anew. */
export function markOf({ kind, title, level, at }: Attention): string {
  return JSON.stringify([kind, title, level, BEGIN.includes(kind) ? at : null]);
}

/** The rows that need to be looked at, and those that the reader has dismissed. */
export function splitRows(rows: readonly Attention[], marks: readonly string[]): { shown: Attention[]; dismissed: Attention[] } {
  const isDismissed = (row: Attention) => marks.includes(markOf(row));
  return { shown: rows.filter((row) => !isDismissed(row)), dismissed: rows.filter(isDismissed) };
}

/** The marks of rows that are still there: what is over is forgotten, and is shown if it comes again. */
export function marksLeft(rows: readonly Attention[], marks: readonly string[]): readonly string[] {
  const there = new Set(rows.map(markOf));
  return marks.every((mark) => there.has(mark)) ? marks : marks.filter((mark) => there.has(mark));
}

/** What was stored; nothing of what cannot be read. */
export function readMarks(stored: string | null): readonly string[] {
  try {
    const found: unknown = JSON.parse(stored ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}
