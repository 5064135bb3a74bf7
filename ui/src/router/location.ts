import { computed, signal } from "@preact/signals";

/** Where the dashboard is mounted; the server writes it into <base>. */
const base = new URL(document.baseURI);

export interface Place {
  /** The path below the mount point, without a leading slash. */
  path: string;
  search: string;
}

function readPlace(): Place {
  const { pathname, search } = location;
  const root = base.pathname;
  const path = pathname.startsWith(root) ? pathname.slice(root.length) : pathname.replace(/^\//, "");
  return { path: path.replace(/\/+$/, ""), search };
}

export const place = signal<Place>(readPlace());
export const path = computed(() => place.value.path);
export const query = computed(() => new URLSearchParams(place.value.search));

/** The namespace in the address; empty for the default one. */
export const namespace = computed(() => query.value.get("ns") ?? "");

export type QueryValues = Readonly<Record<string, string | number | null | undefined>>;

/** Grows with each move that should bring the reader to the top of a view. */
export const visits = signal(0);

function encodeQuery(values: QueryValues): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

/** Joins parts of a path, each escaped: `pathOf("queues", name)`. */
export function pathOf(...parts: string[]): string {
  return parts.map(encodeURIComponent).join("/");
}

/** The address of a place of the dashboard, below the mount point, in the current namespace. */
export function href(to: string, values: QueryValues = {}): string {
  const ns = "ns" in values ? values.ns : namespace.value;
  const [bare = "", own = ""] = to.split("?");
  const merged: Record<string, string | number | null | undefined> = Object.fromEntries(new URLSearchParams(own));
  return base.pathname + bare.replace(/^\/+/, "") + encodeQuery({ ...merged, ...values, ns });
}

const scrollOf = new Map<string, number>();
let stateKey = String(history.state?.key ?? "first");
let nextKey = Date.now();

function rememberScroll(): void {
  scrollOf.set(stateKey, scrollY);
}

function commit(url: string, how: "push" | "replace"): void {
  if (how === "push") {
    rememberScroll();
    nextKey += 1;
    stateKey = String(nextKey);
    history.pushState({ key: stateKey }, "", url);
  } else {
    history.replaceState({ key: stateKey }, "", url);
  }
  place.value = readPlace();
}

/** Goes to a place of the dashboard. */
export function navigate(to: string, values: QueryValues = {}, how: "push" | "replace" = "push"): void {
  const before = place.peek().path;
  commit(href(to, values), how);
  if (place.peek().path !== before) {
    scrollTo(0, 0);
    visits.value += 1;
  }
}

/** Goes to a full address that `href` made. */
export function navigateTo(url: string, how: "push" | "replace" = "push"): void {
  const target = new URL(url, base);
  navigate(target.pathname.slice(base.pathname.length), Object.fromEntries(target.searchParams), how);
}

/** Changes query parameters of this place and leaves the rest; null or "" takes one out. */
export function setQuery(values: QueryValues, how: "push" | "replace" = "push"): void {
  const merged = Object.fromEntries(query.peek());
  commit(href(place.peek().path, { ...merged, ...values }), how);
}

/** The place itself, one step up: the list an item is in. */
export function goUp(): void {
  const parts = place.peek().path.split("/");
  if (parts.length > 1) navigate(parts.slice(0, parts[0] === "limits" ? 1 : -1).join("/"));
  else navigate("");
}

history.scrollRestoration = "manual";
history.replaceState({ key: stateKey }, "");
addEventListener("popstate", (event) => {
  rememberScroll();
  stateKey = String((event.state as { key?: string } | null)?.key ?? "first");
  place.value = readPlace();
  restoreScroll(scrollOf.get(stateKey) ?? 0);
});

/** The rows of a list may take a moment to come back, so the place is tried for half a second. */
function restoreScroll(to: number): void {
  const until = performance.now() + 500;
  const attempt = () => {
    scrollTo(0, to);
    if (Math.abs(scrollY - to) > 2 && performance.now() < until) requestAnimationFrame(attempt);
  };
  requestAnimationFrame(attempt);
}
