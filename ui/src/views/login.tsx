import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "../api/client";
import { ApiError, textOfError } from "../api/errors";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { Field } from "../components/Field";
import { Icon } from "../icons/Icon";
import { navigateTo, query } from "../router/location";
import { isSignedOut, readSession, session } from "../state/session";
import "../styles/views/login.css";
import { nextPlace } from "./login/next";

interface Problem {
  text: string;
  /** When it may be tried again, if only then. */
  until: number;
}

function problemOf(error: unknown): Problem {
  if (error instanceof ApiError && error.status === 429) {
    const wait = Number(error.extra.retry_after);
    return { text: "", until: Date.now() + (Number.isFinite(wait) ? Math.max(1, wait) : 60) * 1000 };
  }
  if (error instanceof ApiError && error.status === 401) return { text: "This token is not known or has expired.", until: 0 };
  const text = textOfError(error);
  return { text: `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`, until: 0 };
}

/** The seconds until a moment, counted down; 0 when it has come. */
function useSecondsUntil(until: number): number {
  const left = () => Math.max(0, Math.ceil((until - Date.now()) / 1000));
  const [seconds, setSeconds] = useState(left);
  useEffect(() => {
    setSeconds(left());
    if (left() === 0) return;
    const timer = setInterval(() => {
      setSeconds(left());
      if (left() === 0) clearInterval(timer);
    }, 250);
    return () => clearInterval(timer);
  }, [until]);
  return seconds;
}

/** One field. Who is signed in already, or need not be, goes on to where they wanted. */
export default function LoginView() {
  const isIn = session.value !== null;
  useEffect(() => {
    if (isIn) navigateTo(nextPlace(query.peek().get("next"), document.baseURI), "replace");
  }, [isIn]);
  useEffect(() => {
    if (!isSignedOut.peek()) void readSession();
  }, []);
  return (
    <div class="login">
      <div class="login-mark">
        <Icon name="mark" />
      </div>
      <h1>Sign in to Tickwork</h1>
      <Card padded>
        <TokenForm />
      </Card>
      <p class="small dim">
        An admin makes tokens in Settings, or on the machine of the store with <code>tickwork tokens create</code>.
      </p>
    </div>
  );
}

function TokenForm() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isSending, setSending] = useState(false);
  const seconds = useSecondsUntil(problem?.until ?? 0);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    // The frame gives the focus to each new view as a whole; here it belongs to the one field.
    const frame = requestAnimationFrame(() => form.current?.querySelector("input")?.focus());
    return () => cancelAnimationFrame(frame);
  }, []);
  const isLocked = (problem?.until ?? 0) > 0 && seconds > 0;
  const said = isLocked ? `Try again in ${seconds} s.` : problem?.text || null;
  const signIn = async () => {
    setSending(true);
    try {
      await post("session", { token: token.trim() });
      // The cookie is there now: this tells who one is with it.
      await readSession();
    } catch (error) {
      setProblem(problemOf(error));
      setSending(false);
    }
  };
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() && !isSending && !isLocked) void signIn();
      }}
    >
      <Field
        label="Token"
        type="password"
        name="token"
        autoComplete="current-password"
        required
        value={token}
        onInput={(next) => {
          setToken(next);
          if (!isLocked) setProblem(null);
        }}
        error={said}
      />
      <Button kind="prime" type="submit" off={isSending ? "The server is being asked." : isLocked ? said : null}>
        Sign in
      </Button>
    </form>
  );
}
