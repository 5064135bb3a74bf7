import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isAborted, textOfError } from "../api/errors";
import { shortId } from "../format/ids";
import { formatBounded, formatCount } from "../format/numbers";
import { Text } from "../text/Text";
import { Banner } from "./Banner";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Field } from "./Field";
import { TimeAgo } from "./TimeAgo";

/** What a bulk action would touch, as `bulk/preview` tells it. */
export interface PreviewShown {
  count: number;
  /** The count is bounded: there may be more. */
  at_least?: boolean;
  /** Tasks, or lines of text where it is about something else. */
  samples: readonly (string | { id: string; type: string; key?: string | null })[];
  /** Tasks submitted after this are not touched. */
  moment?: string;
}

interface ConfirmDialogProps<Preview extends PreviewShown> {
  /** The verb and what it is done to: "Cancel tasks". */
  title: string;
  /** What happens, in words, once the count is known: "Cancel 412 tasks of type charge_payment that wait for …". */
  sentence?: (count: number) => ComponentChildren;
  /** What the server would do; without it the dialog asks at once. */
  preview?: (signal: AbortSignal) => Promise<Preview>;
  /** The button repeats the verb and the count: "Cancel 412 tasks". */
  button: (count: number) => string;
  danger?: boolean;
  /** What cannot be had back asks to type the number, whatever it is. */
  removes?: boolean;
  /** More to say or to choose: a note, a time, a rate. */
  children?: ComponentChildren;
  /** Why it cannot be confirmed yet, from the fields in `children`. */
  off?: string | null;
  onConfirm: (preview: Preview | null) => void;
  onClose: () => void;
}

const ASK_TO_TYPE_OVER = 1000;

/** Asks before a change, with what it would touch. The focus starts on Back. */
export function ConfirmDialog<Preview extends PreviewShown = PreviewShown>(props: ConfirmDialogProps<Preview>) {
  const [preview, setPreview] = useState<Preview | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [typed, setTyped] = useState("");
  useEffect(() => {
    const control = new AbortController();
    props.preview?.(control.signal).then(setPreview, (error: unknown) => !isAborted(error) && setProblem(textOfError(error)));
    return () => control.abort();
  }, []);
  const isReady = !props.preview || preview !== null;
  const count = preview?.count ?? 1;
  const mustType = isReady && (count > ASK_TO_TYPE_OVER || (props.removes && preview !== null));
  const typedNumber = typed.replace(/[\s,]/g, "");
  const waitsFor = !isReady ? "The count is not known yet." : mustType && typedNumber !== String(count) ? "Type the number first." : (props.off ?? null);
  const confirm = () => {
    props.onClose();
    props.onConfirm(preview);
  };
  return (
    <Dialog
      title={props.title}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose} autoFocus>
            Back
          </Button>
          <Button kind="prime" danger={props.danger ?? false} off={problem ?? waitsFor} onClick={confirm}>
            {isReady ? props.button(count) : props.title}
          </Button>
        </>
      }
    >
      <div class="in">
        {problem && <Banner tone="bad">{problem}</Banner>}
        {isReady && props.sentence && <p>{props.sentence(count)}</p>}
        {!isReady && !problem && <span class="wait" />}
        {preview && <Samples preview={preview} />}
        {props.children}
        {mustType && <Field label={`Type ${formatCount(count)} to go on`} value={typed} onInput={setTyped} code />}
      </div>
    </Dialog>
  );
}

const MOST_SAMPLES = 5;

function Samples({ preview }: { preview: PreviewShown }) {
  const { count, samples, moment } = preview;
  const rest = count - Math.min(samples.length, MOST_SAMPLES);
  return (
    <>
      {samples.length > 0 && (
        <ul class="samples">
          {samples.slice(0, MOST_SAMPLES).map((sample, at) => (
            <li key={at}>{typeof sample === "string" ? <Text>{sample}</Text> : <TaskSample task={sample} />}</li>
          ))}
          {rest > 0 && <li class="dim">and {formatBounded(rest, preview.at_least ?? false)} more</li>}
        </ul>
      )}
      {moment && (
        <p class="small dim">
          Tasks submitted after <TimeAgo at={moment} form="clock" /> are not touched.
        </p>
      )}
    </>
  );
}

function TaskSample({ task }: { task: { id: string; type: string; key?: string | null } }) {
  return (
    <>
      <Text>{task.type}</Text>{" "}
      <span class="dim">
        <span class="mono">{shortId(task.id)}</span> <Text>{task.key}</Text>
      </span>
    </>
  );
}
