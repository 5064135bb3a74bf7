import { useEffect, useState } from "preact/hooks";
import { isAborted, textOfError } from "../../api/errors";
import type { BulkAction } from "../../api/types/tasks";
import { Banner } from "../../components/Banner";
import { Button } from "../../components/Button";
import { Check } from "../../components/Check";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { StatusPill } from "../../components/marks";
import { TimeAgo } from "../../components/TimeAgo";
import { parseDuration } from "../../format/durations";
import { shortId } from "../../format/ids";
import { formatBounded, formatCount } from "../../format/numbers";
import { Text } from "../../text/Text";
import { beginBulk, type Options, previewBulk, type Previewed, type Target } from "./bulk";
import { VERBS } from "./verbs";
import { filterInWords } from "./words";

interface BulkDialogProps {
  action: BulkAction;
  target: Target;
  onClose: () => void;
  /** It was confirmed: the rows need not stay chosen. */
  onBegin: () => void;
  onEnd: () => void;
}

const ASK_TO_TYPE_OVER = 1000;
const MOST_SAMPLES = 5;

interface Form {
  force: boolean;
  cascade: boolean;
  rate: string;
  delay: string;
}

/** The options that the form asks for, or null while a field holds something else. */
function optionsOf(action: BulkAction, form: Form): Options | null {
  const rate = Number(form.rate);
  if (form.rate.trim() && !(rate > 0)) return null;
  const paced: Options = form.rate.trim() ? { rate } : {};
  if (action === "cancel") return form.force ? { ...paced, force: true } : paced;
  if (action === "retry") return form.cascade ? { ...paced, cascade: true } : paced;
  if (action !== "reschedule") return paced;
  const delay = parseDuration(form.delay);
  return delay === null ? null : { ...paced, delay };
}

/** Asks before something is done to many tasks: the verb, the count from the server, samples, and the filter in words. */
export function BulkDialog({ action, target, onClose, onBegin, onEnd }: BulkDialogProps) {
  const [form, setForm] = useState<Form>({ force: false, cascade: false, rate: "", delay: "10m" });
  const [previewed, setPreviewed] = useState<Previewed | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [typed, setTyped] = useState("");
  const verb = VERBS[action];
  const options = optionsOf(action, form);
  const asked = JSON.stringify(options);

  useEffect(() => {
    setPreviewed(null);
    setProblem(null);
    const wanted = JSON.parse(asked) as Options | null;
    if (wanted === null) return;
    const control = new AbortController();
    previewBulk(action, target, wanted, control.signal).then(setPreviewed, (error: unknown) => !isAborted(error) && !control.signal.aborted && setProblem(textOfError(error)));
    return () => control.abort();
  }, [asked]);

  const count = previewed?.count ?? 0;
  const what = `${previewed ? formatBounded(count, previewed.isBound) : ""} ${count === 1 ? "task" : "tasks"}`.trim();
  const mustType = previewed !== null && count > 0 && (count > ASK_TO_TYPE_OVER || action === "delete");
  const off = offReason(problem, options, previewed, mustType && typed.replace(/[\s,]/g, "") !== String(count));
  const confirm = () => {
    if (!previewed) return;
    onClose();
    onBegin();
    beginBulk(action, target, previewed, onEnd);
  };
  return (
    <Dialog
      title={`${verb.name} tasks${verb.after}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose} autoFocus>
            Back
          </Button>
          <Button kind="prime" danger={action === "cancel" || action === "delete"} off={off} onClick={confirm}>
            {verb.name} {what}
            {verb.after}
          </Button>
        </>
      }
    >
      <div class="in">
        {problem && <Banner tone="bad">{problem}</Banner>}
        {!problem && options && (previewed ? <Sentence action={action} target={target} previewed={previewed} what={what} /> : <span class="wait" />)}
        <OptionFields action={action} target={target} form={form} onChange={setForm} />
        {previewed && <Samples previewed={previewed} />}
        {mustType && <Field label={`Type ${formatCount(count)} to go on`} value={typed} onInput={setTyped} code />}
      </div>
    </Dialog>
  );
}

function offReason(problem: string | null, options: Options | null, previewed: Previewed | null, isUntyped: boolean): string | null {
  if (problem) return problem;
  if (!options) return "A field is not filled in yet.";
  if (!previewed) return "The count is not known yet.";
  if (previewed.count === 0) return "There is nothing to do.";
  return isUntyped ? "Type the number first." : null;
}

function Sentence({ action, target, previewed, what }: { action: BulkAction; target: Target; previewed: Previewed; what: string }) {
  const verb = VERBS[action];
  if (previewed.count === 0) return <p>None of these can be {verb.done} now.</p>;
  const words = target.ids ? (previewed.count < target.ids.length ? ` of the ${formatCount(target.ids.length)} chosen` : " that you chose") : ` ${filterInWords(target.filter)}`;
  const statuses = Object.entries(mergedStatuses(previewed)).map(([status, count]) => `${formatCount(count)} ${status}`);
  return (
    <p>
      {verb.name} {what}
      <Text>{words.trimEnd()}</Text>
      {verb.after}
      {statuses.length > 1 ? `: ${statuses.join(", ")}.` : "."}
    </p>
  );
}

function mergedStatuses(previewed: Previewed): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const part of previewed.parts) for (const [status, count] of Object.entries(part.statuses)) sums[status] = (sums[status] ?? 0) + (count ?? 0);
  return sums;
}

function OptionFields({ action, target, form, onChange }: { action: BulkAction; target: Target; form: Form; onChange: (form: Form) => void }) {
  return (
    <>
      {action === "reschedule" && (
        <Field
          label="Run them after"
          value={form.delay}
          onInput={(delay) => onChange({ ...form, delay })}
          hint="From now, for example 90s, 10m, 2h or 1d."
          error={parseDuration(form.delay) === null ? "Write a number with ms, s, m, h or d." : null}
          code
        />
      )}
      {action === "cancel" && target.statuses.includes("running") && (
        <Check checked={form.force} onChange={(force) => onChange({ ...form, force })}>
          Also tell running tasks to stop. They may still succeed.
        </Check>
      )}
      {action === "retry" && (
        <>
          {target.statuses.includes("success") && <p class="small dim">Tasks that succeeded repeat their effects if they run again.</p>}
          <Check checked={form.cascade} onChange={(cascade) => onChange({ ...form, cascade })}>
            Also bring back the tasks that were cancelled because of them.
          </Check>
          <Field label="At most this many a second" value={form.rate} onInput={(rate) => onChange({ ...form, rate })} hint="Empty for as fast as the store takes them." error={form.rate.trim() && !(Number(form.rate) > 0) ? "Write a number above 0." : null} code />
        </>
      )}
    </>
  );
}

function Samples({ previewed }: { previewed: Previewed }) {
  const samples = previewed.parts.flatMap((part) => part.samples).slice(0, MOST_SAMPLES);
  const moment = previewed.parts[0]?.moment;
  const rest = previewed.count - samples.length;
  if (samples.length === 0) return null;
  return (
    <>
      <ul class="samples task-samples">
        {samples.map((row) => (
          <li key={row.id}>
            <StatusPill status={row.status} />
            <span class="cut">
              <Text>{row.type}</Text>
            </span>
            <span class="mono dim">
              <Text>{shortId(row.id)}</Text>
            </span>
            <span class="mid cut">
              <Text>{row.key}</Text>
            </span>
          </li>
        ))}
        {rest > 0 && <li class="dim">and {formatBounded(rest, previewed.isBound)} more</li>}
      </ul>
      <p class="small dim">
        Tasks submitted after <TimeAgo at={moment} form="clock" /> are not touched.
      </p>
    </>
  );
}
