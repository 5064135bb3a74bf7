import { computed, effect, signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useErrorBoundary, useRef } from "preact/hooks";
import { Banner } from "../components/Banner";
import { Button } from "../components/Button";
import { page } from "../state/page";
import { path, visits } from "./location";
import { type Match, matchPath, type Route, ROUTES, type ViewProps } from "./routes";

export const match = computed<Match>(() => matchPath(path.value));

/** A view that comes may say more (`useTitle`); until then the name of its route stands. */
effect(() => {
  void path.value;
  page.value = { title: match.value.route.title, crumbs: [] };
});

const loaded = signal<ReadonlyMap<Route["load"], ComponentType<ViewProps<string>>>>(new Map());
const broken = signal<ReadonlySet<Route["load"]>>(new Set());

async function load(route: Route): Promise<void> {
  if (loaded.peek().has(route.load)) return;
  try {
    const module = await route.load();
    loaded.value = new Map(loaded.peek()).set(route.load, module.default);
  } catch {
    broken.value = new Set(broken.peek()).add(route.load);
  }
}

/** Fetches the other views while nothing else is to be done, so that going there costs no wait. */
export function preloadViews(): void {
  const later = globalThis.requestIdleCallback ?? ((run: () => void) => setTimeout(run, 300));
  const rest = [...ROUTES];
  const next = () => {
    const route = rest.shift();
    if (route && route.name !== "gallery") void load(route).then(() => later(next));
    else if (route) later(next);
  };
  later(next);
}

/** The part of the page that changes with the address. While it waits the view is fetched, but not drawn. */
export function Outlet({ waits = false }: { waits?: boolean }) {
  const { route, params } = match.value;
  const where = path.value;
  const element = useRef<HTMLElement>(null);
  useEffect(() => void load(route), [route]);
  const visit = visits.value;
  useEffect(() => {
    // A reader who cannot see the page must hear that it changed; the first view needs no move.
    if (visit > 0) element.current?.focus({ preventScroll: true });
  }, [visit]);
  const View = loaded.value.get(route.load);
  return (
    <main class={`view view-${route.name}`} id="content" tabIndex={-1} ref={element} aria-label={page.value.title}>
      {broken.value.has(route.load) && <Unloadable />}
      {View && !waits && (
        <Guard key={where}>
          <View params={params} />
        </Guard>
      )}
    </main>
  );
}

function Unloadable() {
  return (
    <Banner tone="heal" action={<Button onClick={() => location.reload()}>Load the page again</Button>}>
      This view could not be fetched. The server may have been updated meanwhile.
    </Banner>
  );
}

/** One view that breaks must not take the frame with it. */
function Guard({ children }: { children: preact.ComponentChildren }) {
  const [error, reset] = useErrorBoundary((thrown) => console.error(thrown));
  if (!error) return <>{children}</>;
  return (
    <Banner tone="bad" action={<Button onClick={reset}>Try again</Button>}>
      This view could not be drawn: {error instanceof Error ? error.message : String(error)}
    </Banner>
  );
}
