import { batch, signal } from "@preact/signals";

export interface FeedPage<Row> {
  /** The newest first. */
  items: readonly Row[];
  /** Asks for the rows before these; null where there are none. */
  before: number | null;
  /** Rows have left for good. */
  missed?: boolean;
}

const MOST_ROWS = 2000;
const MOST_WAITING = 500;

/**
 * A list that grows at its top, newest first. What is newer waits until it is shown, so that nothing moves under a
 * reader; what is older is added at the end.
 */
export class Feed<Row> {
  readonly rows = signal<readonly Row[]>([]);
  /** Newer rows that are not shown yet. */
  readonly waiting = signal<readonly Row[]>([]);
  /** There are more newer rows than are kept: showing them means to read the list again. */
  readonly isCut = signal(false);
  readonly before = signal<number | null>(null);
  readonly missed = signal(false);
  /** The number of the newest row that is known, shown or not. */
  newest = 0;

  constructor(private readonly numberOf: (row: Row) => number) {}

  /** Begins anew with a first page. `newest` is given where the page is only a choice of what there is. */
  begin(page: FeedPage<Row>, newest = 0): void {
    batch(() => {
      this.rows.value = page.items;
      this.waiting.value = [];
      this.isCut.value = false;
      this.before.value = page.before;
      this.missed.value = page.missed ?? false;
    });
    this.newest = Math.max(newest, ...page.items.slice(0, 1).map(this.numberOf));
  }

  /** Takes rows that may be newer; answers how many are. `isWhole` says that none is left out between these and those known. */
  offer(items: readonly Row[], isWhole: boolean, isWanted: (row: Row) => boolean = () => true): number {
    const newer = items.filter((row) => this.numberOf(row) > this.newest);
    const wanted = newer.filter(isWanted);
    this.newest = Math.max(this.newest, ...newer.slice(0, 1).map(this.numberOf));
    const all = [...wanted, ...this.waiting.peek()];
    batch(() => {
      this.waiting.value = all.slice(0, MOST_WAITING);
      if (!isWhole || all.length > MOST_WAITING) this.isCut.value = true;
    });
    return wanted.length;
  }

  /** Shows what waits. False means that too much does: the list must be read again. */
  show(): boolean {
    if (this.isCut.peek()) return false;
    if (this.waiting.peek().length === 0) return true;
    const all = [...this.waiting.peek(), ...this.rows.peek()];
    const kept = all.slice(0, MOST_ROWS);
    const last = kept.at(-1);
    batch(() => {
      this.rows.value = kept;
      this.waiting.value = [];
      if (kept.length < all.length && last) this.before.value = this.numberOf(last);
    });
    return true;
  }

  addOlder(page: FeedPage<Row>): void {
    const known = new Set(this.rows.peek().map(this.numberOf));
    batch(() => {
      this.rows.value = [...this.rows.peek(), ...page.items.filter((row) => !known.has(this.numberOf(row)))];
      this.before.value = page.before;
      this.missed.value = this.missed.peek() || (page.missed ?? false);
    });
  }
}
