import { batch, effect, untracked } from "@preact/signals";
import { del, unauthorised } from "../api/client";
import { reconnects } from "../api/reach";
import { toast } from "../components/toasts";
import { textOfError } from "../api/errors";
import { navigate, path, place } from "../router/location";
import { isSignedOut, readSession, session } from "../state/session";

export async function signOut(): Promise<void> {
  try {
    await del("session");
  } catch (error) {
    toast({ text: `You are still signed in: ${textOfError(error)}`, tone: "bad" });
    return;
  }
  batch(() => {
    session.value = null;
    isSignedOut.value = true;
    navigate("login", { ns: null });
  });
}

function goToLogin(): void {
  const { path: here, search } = place.peek();
  navigate("login", { next: `${here}${search}` || null, ns: null }, "replace");
}

/** Asks who is signed in, again after an outage or a refusal, and brings those who are not to the login. */
export function startSession(): void {
  effect(() => {
    void reconnects.value;
    void unauthorised.value;
    untracked(() => void readSession());
  });
  effect(() => {
    if (isSignedOut.value && path.value !== "login") untracked(goToLogin);
  });
}
