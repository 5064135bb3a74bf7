import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { namespace } from "../router/location";
import { storeNow } from "../state/clock";
import { get } from "./client";
import { ApiError, isAborted } from "./errors";
import { reconnects } from "./reach";

export interface Resource<Data> {
  /** What was read last. It stays while newer data is on its way, and when that fails. */
  readonly data: ReadonlySignal<Data | null>;
  readonly error: ReadonlySignal<ApiError | null>;
  readonly loading: ReadonlySignal<boolean>;
  /** There is no data yet and it takes long enough to say so. */
  readonly isSlow: ReadonlySignal<boolean>;
  /** When the data was read, by the store's clock; 0 before. */
  readonly readAt: ReadonlySignal<number>;
  refresh(): Promise<void>;
  /** Changes the data in place, for what a live event already tells. */
  update(change: (data: Data) => Data): void;
}

export interface ResourceOptions {
  /** Read again this often, in milliseconds, while the tab is visible. */
  every?: number;
}

const SLOW_AFTER = 400;

class Reader<Data> implements Resource<Data> {
  readonly data = signal<Data | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly loading = signal(true);
  readonly isSlow = signal(false);
  readonly readAt = signal(0);
  private what: string | null = null;
  private current: AbortController | null = null;

  /** Follows an address; another one drops what was read from the one before. */
  follow(what: string | null): void {
    if (what !== this.what) this.error.value = null;
    this.what = what;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    this.current?.abort();
    if (this.what === null) {
      this.loading.value = false;
      return;
    }
    const control = new AbortController();
    this.current = control;
    this.loading.value = true;
    const slow = setTimeout(() => (this.isSlow.value = this.data.peek() === null), SLOW_AFTER);
    try {
      const data = await get<Data>(this.what, { signal: control.signal });
      if (control.signal.aborted) return;
      this.data.value = data;
      this.readAt.value = storeNow();
      this.error.value = null;
    } catch (error) {
      if (isAborted(error) || control.signal.aborted) return;
      this.error.value = error instanceof ApiError ? error : new ApiError(0, "unknown", String(error));
    } finally {
      clearTimeout(slow);
      if (this.current === control) {
        this.loading.value = false;
        this.isSlow.value = false;
      }
    }
  }

  update(change: (data: Data) => Data): void {
    const data = this.data.peek();
    if (data !== null) this.data.value = change(data);
  }

  stop(): void {
    this.current?.abort();
  }
}

/**
 * Reads something of the API for as long as the component is there, and anew when `what` gives another address: it may
 * read signals, state and props. It returns a path with its query ("queues", "tasks?q=..."; see `withQuery`), or null for nothing yet.
 */
export function useResource<Data>(what: () => string | null, options: ResourceOptions = {}): Resource<Data> {
  const reader = useMemo(() => new Reader<Data>(), []);
  const address = what();
  useEffect(() => reader.follow(address), [address, reconnects.value, namespace.value]);
  useEffect(() => () => reader.stop(), []);
  useEffect(() => {
    if (!options.every) return;
    const timer = setInterval(() => !document.hidden && void reader.refresh(), options.every);
    return () => clearInterval(timer);
  }, [options.every]);
  return reader;
}

/** A path with query parameters; empty ones are left out. */
export function withQuery(what: string, values: Readonly<Record<string, string | number | null | undefined>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${what}?${text}` : what;
}
