import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "../../api/client";
import { isAborted, textOfError } from "../../api/errors";
import { type Resource, useResource, withQuery } from "../../api/resource";
import type { EventPage, EventRow } from "../../api/types/events";
import { toMillis } from "../../format/times";
import { storeNow } from "../../state/clock";
import { Feed } from "./feed";
import { type EventFilter, fits } from "./filter";

const PAGE = 100;
const LARGEST_PAGE = 500;
const MOST_PAGES = 4;
const LOOK_EVERY = 1000;
/** More than this a second nobody reads: from here on, following is a choice, and shows one in so many. */
export const CALM_RATE = 50;
const SHOWN_A_SECOND = 4;
/** The server looks at so many facts for one page, then asks whether to go on. */
const MOST_LOOKED = 10_000;

/** One in how many facts is shown while one follows, at so many a second. */
export function oneIn(rate: number): number {
  return rate <= CALM_RATE ? 1 : 2 ** Math.ceil(Math.log2(rate / SHOWN_A_SECOND));
}

function rateOf(page: EventPage): number {
  const oldest = page.items.at(-1);
  if (!oldest || page.items.length < 2) return 0;
  return page.items.length / Math.max(1, (storeNow() - toMillis(oldest.at)) / 1000);
}

/** Whether no fact is older. A page that is short does not tell: it may have looked at as many as it may, in vain. */
export async function isEndOfLog(before: number, signal?: AbortSignal): Promise<boolean> {
  const page = await get<EventPage>(withQuery("events", { limit: 1, before }), signal ? { signal } : {});
  return page.items.length === 0;
}

function wait(millis: number): Promise<void> {
  return new Promise((done) => setTimeout(done, millis));
}

/**
 * The log as the view shows it. The stream merges what happens to one task, so it only tells that there is something:
 * the facts themselves are read from the log, each of them.
 */
export class EventLog {
  readonly feed = new Feed<EventRow>((row) => row.seq);
  /** Facts a second that fit the filter. */
  readonly rate = signal(0);
  /** It was slow enough to follow when it was opened. */
  readonly isCalm = signal(true);
  readonly isReadingOlder = signal(false);
  /** How many facts were looked at for what is shown, fitting or not, at most. */
  readonly looked = signal(MOST_LOOKED);
  readonly problem = signal<string | null>(null);
  /** Set by the view: facts are shown as they come. */
  isFollowing = false;
  isHeld: () => boolean = () => false;
  private mustBegin = true;
  private isLooking = false;
  private lookedAt = 0;
  private stopped = new AbortController();

  constructor(
    private readonly first: Resource<EventPage>,
    private readonly filter: ReadonlySignal<EventFilter>,
  ) {}

  /** What the address asks for has changed: the next page that comes is another list. */
  expectNew(): void {
    this.mustBegin = true;
  }

  take(page: EventPage): void {
    if (this.mustBegin) this.begin(page);
    else {
      const reaches = page.items.length < PAGE || page.items.some((row) => row.seq <= this.feed.newest);
      this.feed.offer(page.items, reaches);
      this.showIfFollowed();
    }
  }

  private begin(page: EventPage): void {
    this.mustBegin = false;
    this.feed.begin(page, page.last);
    this.looked.value = MOST_LOOKED;
    this.lookedAt = Date.now();
    this.rate.value = rateOf(page);
    this.isCalm.value = this.rate.value <= CALM_RATE;
    if (page.items.length < PAGE) void this.findEnd().catch(() => undefined);
  }

  /** Offers nothing older where there is nothing. */
  private async findEnd(): Promise<void> {
    const before = this.feed.before.peek();
    if (before === null || !(await isEndOfLog(before, this.stopped.signal))) return;
    if (this.feed.before.peek() === before) this.feed.before.value = null;
  }

  /** Something has happened: look what, once a second at most. */
  wake(): void {
    if (this.isLooking || this.mustBegin || (this.feed.isCut.peek() && !this.isFollowing)) return;
    this.isLooking = true;
    void this.look().finally(() => (this.isLooking = false));
  }

  private async look(): Promise<void> {
    await wait(Math.max(0, this.lookedAt + LOOK_EVERY - Date.now()));
    if (this.stopped.signal.aborted) return;
    const seconds = Math.max(0.2, (Date.now() - this.lookedAt) / 1000);
    try {
      const { items, isWhole } = await this.readNewer(seconds);
      if (this.mustBegin) return;
      this.meet(items, isWhole, seconds);
    } catch (error) {
      // The frame tells of outages; what is shown stays, and the next fact wakes it again.
      if (!isAborted(error)) this.lookedAt = Date.now();
    }
  }

  private meet(items: readonly EventRow[], isWhole: boolean, seconds: number): void {
    const filter = this.filter.peek();
    const every = this.isFollowing ? oneIn(this.rate.peek()) : 1;
    const came = items.filter((row) => row.seq > this.feed.newest && fits(row, filter)).length;
    this.feed.offer(items, isWhole || every > 1, (row) => fits(row, filter) && row.seq % every === 0);
    this.lookedAt = Date.now();
    this.rate.value = 0.6 * this.rate.peek() + 0.4 * (came / seconds);
    this.showIfFollowed();
  }

  /** The newest facts, page by page until one that is known. */
  private async readNewer(seconds: number): Promise<{ items: EventRow[]; isWhole: boolean }> {
    const items: EventRow[] = [];
    let before: number | null = null;
    let limit = Math.min(LARGEST_PAGE, Math.ceil(this.rate.peek() * seconds * 2) + 20);
    for (let at = 0; at < MOST_PAGES; at += 1) {
      const page: EventPage = await get<EventPage>(withQuery("events", { limit, before }), { signal: this.stopped.signal });
      items.push(...page.items);
      if (page.before === null || page.items.some((row) => row.seq <= this.feed.newest)) return { items, isWhole: !page.missed || page.before === null };
      before = page.before;
      limit = LARGEST_PAGE;
    }
    return { items, isWhole: false };
  }

  private showIfFollowed(): void {
    if (this.isFollowing && !this.isHeld()) this.show();
  }

  show(): void {
    if (!this.feed.show()) this.again();
  }

  /** Reads the list from its top. */
  again(): void {
    this.mustBegin = true;
    void this.first.refresh();
  }

  async readOlder(): Promise<void> {
    const before = this.feed.before.peek();
    if (before === null || this.isReadingOlder.peek()) return;
    this.isReadingOlder.value = true;
    this.problem.value = null;
    try {
      const page = await get<EventPage>(withQuery("events", { ...this.filter.peek(), limit: PAGE, before }), { signal: this.stopped.signal });
      this.feed.addOlder(page);
      this.looked.value += MOST_LOOKED;
      if (page.items.length < PAGE) await this.findEnd();
    } catch (error) {
      if (!isAborted(error)) this.problem.value = textOfError(error);
    } finally {
      this.isReadingOlder.value = false;
    }
  }

  stop(): void {
    this.stopped.abort();
  }

  start(): void {
    this.stopped = new AbortController();
  }
}

/** The facts that fit a filter, newest first, for as long as the component is there. */
export function useEventLog(filter: ReadonlySignal<EventFilter>): { first: Resource<EventPage>; log: EventLog } {
  const address = useMemo(() => computed(() => withQuery("events", { ...filter.value, limit: PAGE })), []);
  const first = useResource<EventPage>(() => address.value);
  const log = useMemo(() => new EventLog(first, filter), []);
  useEffect(() => {
    log.start();
    const stops = [
      effect(() => {
        void address.value;
        log.expectNew();
      }),
      effect(() => {
        const page = first.data.value;
        if (page) untracked(() => log.take(page));
      }),
    ];
    return () => {
      for (const stop of stops) stop();
      log.stop();
    };
  }, []);
  return { first, log };
}
