import type { Resource } from "../api/resource";
import { Button } from "./Button";

/** Room for what comes: empty at first, a grey bar if it takes long. Never a spinner. */
export function Loading({ of, rows = 3 }: { of: Resource<unknown>; rows?: number }) {
  return (
    <div class="c" aria-busy="true">
      <span class="sr">{of.isSlow.value ? "It is being read." : ""}</span>
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} style={{ height: "32px", display: "flex", alignItems: "center" }}>
          {of.isSlow.value && <span class="wait" style={{ maxWidth: `${70 - at * 14}%` }} />}
        </div>
      ))}
    </div>
  );
}

/** One part could not be read: it says so, and the rest of the page goes on. */
export function ReadError({ of }: { of: Resource<unknown> }) {
  const error = of.error.value;
  if (!error) return null;
  return (
    <div class="card-error" role="alert">
      <span>This could not be read: {error.detail.replace(/\.$/, "")}.</span>
      <Button small onClick={() => void of.refresh()}>
        Try again
      </Button>
    </div>
  );
}
