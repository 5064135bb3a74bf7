/** What holds tasks back, as the API sends and takes it. */

export interface Limit {
  /** Such as `type:mail` or `queue:orders`. */
  of: string;
  /** Starts a second. */
  rate: number | null;
  /** Starts at once after a pause. */
  burst: number | null;
  /** Runs at a time. */
  concurrency: number | null;
  per: "key" | null;
  origin: "code" | "hand";
  by: string;
  note: string;
  since: string | null;
  /** Starts that are left now. */
  tokens: number | null;
  /** Of those that count against `concurrency`. */
  running: number | null;
  waiting: number;
  /** Of a limit for each key: those at which most wait. */
  keys: Record<string, number>;
}

export interface Breaker {
  /** Such as `type:mail` or `target:http/billing`. */
  of: string;
  state: "open" | "half_open" | "closed";
  /** In a row. */
  failures: number;
  /** None if somebody has opened it without an end. */
  open_until: string | null;
  waiting: number;
  by_hand: boolean;
  by: string;
  note: string;
  since: string | null;
}

export interface SwitchedOff {
  /** Such as `type:mail`, `key:acme` or `tag:customer=acme`. */
  of: string;
  by: string;
  note: string;
  since: string | null;
  /** None: until somebody switches it on. */
  until: string | null;
  waiting: number;
}

/** What `PUT limits` takes. */
export interface WantedLimit {
  of: string;
  rate: string | null;
  burst: number | null;
  concurrency: number | null;
  per: "key" | null;
  note: string;
}

/** What opening a breaker and switching off take. */
export interface WantedStop {
  of: string;
  note: string;
  until: string | null;
}
