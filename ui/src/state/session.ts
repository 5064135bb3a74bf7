import { batch, computed, signal } from "@preact/signals";
import { get } from "../api/client";
import type { Role } from "../api/types";
import type { Me, Right, SessionView } from "../api/types/settings";

/** Somebody who is signed in, and what this server serves them. */
export interface Session extends Me {
  namespace: string;
  namespaces: readonly string[];
  version: string;
  masked: boolean;
}

/** Who is signed in; null until the server has said so, and for nobody. */
export const session = signal<Session | null>(null);

/** The server has said that nobody is signed in. */
export const isSignedOut = signal(false);

/** Takes what the server says about the caller. */
export function takeSession(view: SessionView): void {
  batch(() => {
    isSignedOut.value = view.caller === null;
    session.value = view.caller && { ...view.caller, namespace: view.namespace ?? "", namespaces: view.namespaces, version: view.version ?? "", masked: view.masked };
  });
}

/** Asks who is signed in. If nobody answers, what was known stays: an outage signs nobody out. */
export async function readSession(): Promise<void> {
  try {
    takeSession(await get<SessionView>("session"));
  } catch {
    // The banner tells of the outage, and asks again.
  }
}

export const role = computed(() => session.value?.role ?? "viewer");

const RIGHT_OF: Readonly<Record<Role, Right>> = { viewer: "view", submitter: "submit", operator: "operate", admin: "administer" };

function article(word: string): string {
  return /^[aeiou]/.test(word) ? `an ${word}` : `a ${word}`;
}

/** Why the caller may not do what needs a role; null if it may. */
export function reasonAgainst(needed: Role): string | null {
  // Until it is known who looks, nothing is refused: no button is off for a moment only.
  if (session.value === null || session.value.rights.includes(RIGHT_OF[needed])) return null;
  return `Needs the role ${needed}. You are ${article(role.value)}.`;
}
