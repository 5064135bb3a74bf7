import type { TaskPage, TaskRow } from "../../api/types/tasks";

/** As many as the API gives in one page, and as many as the CSV holds. */
export const PAGE_MOST = 500;
export const FILE_MOST = 10_000;

export interface Collected {
  rows: readonly TaskRow[];
  looked: number;
  /** How many the file will have; null where nobody knows. */
  total: number | null;
  /** There may be more than the file holds. */
  isCut: boolean;
}

type ReadPage = (limit: number, cursor: string | null) => Promise<TaskPage>;

/** Reads page after page until the list ends or the file is full, and tells how far it is. */
export async function collectTasks(read: ReadPage, tell: (sofar: Collected) => void): Promise<Collected> {
  const rows = new Map<string, TaskRow>();
  let cursor: string | null = null;
  let looked = 0;
  for (;;) {
    const page: TaskPage = await read(Math.min(PAGE_MOST, FILE_MOST - rows.size), cursor);
    // Lists of waiting tasks shift between two pages: one that comes again is not written twice.
    for (const row of page.items) rows.set(row.id, row);
    cursor = page.cursor;
    looked += page.looked;
    const isFull = rows.size >= FILE_MOST;
    const sofar: Collected = { rows: [...rows.values()], looked, total: page.total === null ? null : Math.min(page.total, FILE_MOST), isCut: isFull && cursor !== null };
    if (isFull || cursor === null) return sofar;
    tell(sofar);
  }
}

/** One task a line, so that the file can be searched line by line too. */
export function asJson(rows: readonly TaskRow[]): string {
  return rows.length === 0 ? "[]\n" : `[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]\n`;
}
