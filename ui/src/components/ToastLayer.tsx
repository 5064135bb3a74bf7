import { formatCount } from "../format/numbers";
import { StatusShape, type Tone } from "../icons/StatusShape";
import { Link } from "../router/Link";
import { Text } from "../text/Text";
import { Button } from "./Button";
import { closeToast, type Toast, toasts } from "./toasts";

const SHAPE: Readonly<Partial<Record<Tone, "success" | "failed">>> = { good: "success", bad: "failed" };

/** Where toasts are drawn; the frame holds it. */
export function ToastLayer() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <One toast={toast} key={toast.id} />
      ))}
    </div>
  );
}

function One({ toast }: { toast: Toast }) {
  const shape = toast.tone && SHAPE[toast.tone];
  return (
    <div class="toast">
      {shape && <StatusShape status={shape} />}
      <span>
        <Text>{toast.text}</Text>
      </span>
      {toast.progress && (
        <>
          <progress value={toast.progress.done} max={toast.progress.total} aria-label="Progress" />
          <span class="dim nw">
            {formatCount(toast.progress.done)} of {formatCount(toast.progress.total)}
          </span>
        </>
      )}
      {toast.link && (
        <Link class="go nw" to={toast.link.to} query={toast.link.query}>
          {toast.link.label}
        </Link>
      )}
      {toast.undo && (
        <Button small onClick={toast.undo} hint="z">
          Undo
        </Button>
      )}
      <Button kind="quiet" small icon="close" label="Close" onClick={() => closeToast(toast.id)} />
    </div>
  );
}
