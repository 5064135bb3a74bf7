import { effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { namespace } from "../router/location";
import { session } from "./session";

export interface Crumb {
  label: string;
  /** A path of the dashboard, without a leading slash. */
  to: string;
}

interface Page {
  title: string;
  crumbs: readonly Crumb[];
}

/** What the top bar and the window's title say. The router sets it; a view may refine it. */
export const page = signal<Page>({ title: "", crumbs: [] });

/** The title of a view that knows more than its route: a name, an id, a number. */
export function useTitle(title: string, crumbs: readonly Crumb[] = []): void {
  const path = crumbs.map((crumb) => `${crumb.to} ${crumb.label}`).join("|");
  useLayoutEffect(() => {
    page.value = { title, crumbs };
    // `crumbs` is usually written in place, so its content is compared, not itself.
  }, [title, path]);
}

/** An action on what is open, offered by the command palette. */
export interface Action {
  label: string;
  run: () => void;
  /** Why it cannot be done now. */
  off?: string | null;
  key?: string;
}

export const pageActions = signal<readonly Action[]>([]);

/** Offers the actions of a view in the palette while the view is open. */
export function useActions(actions: readonly Action[]): void {
  useEffect(() => {
    pageActions.value = actions;
    return () => {
      if (pageActions.peek() === actions) pageActions.value = [];
    };
  });
}

effect(() => {
  const place = session.value && (namespace.value || session.value.namespace);
  document.title = [page.value.title, place, "Tickwork"].filter(Boolean).join(" · ");
});
