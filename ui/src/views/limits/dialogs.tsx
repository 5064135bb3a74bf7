import { useState } from "preact/hooks";
import { post, put } from "../../api/client";
import type { Breaker, Limit, SwitchedOff, WantedLimit, WantedStop } from "../../api/types/limits";
import { Button } from "../../components/Button";
import { Check } from "../../components/Check";
import { Field } from "../../components/Field";
import { plural } from "../../format/numbers";
import { Text } from "../../text/Text";
import { EndField, endMistake, SOON, untilOf } from "./EndField";
import { AuditNoteField, FormDialog, NoteField } from "./FormDialog";
import { rateText, splitOf } from "./of";
import { joinOf, nameMistake, OfField } from "./OfField";

interface DialogProps {
  onDone: () => void;
  onClose: () => void;
}

const RATE = /^\s*\d+(\.\d+)?\s*(\/\s*[smhd])?\s*$/;

function readCount(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const count = Number(text);
  return Number.isInteger(count) && count >= 1 && count <= 1_000_000 ? count : undefined;
}

/** Sets a limit by hand, or changes one; what the code says is left aside meanwhile. */
export function LimitDialog({ limit, onRemove, onDone, onClose }: DialogProps & { limit: Limit | null; onRemove: (limit: Limit) => void }) {
  const [of, setOf] = useState(limit ? splitOf(limit.of) : { kind: "type", name: "" });
  const [rate, setRate] = useState(limit?.rate ? rateText(limit.rate) : "");
  const [burst, setBurst] = useState(limit?.rate && limit.burst ? String(limit.burst) : "");
  const [concurrency, setConcurrency] = useState(limit?.concurrency ? String(limit.concurrency) : "");
  const [isPerKey, setPerKey] = useState(limit?.per === "key");
  const [note, setNote] = useState(limit?.origin === "hand" ? limit.note : "");
  const rateMistake = rate.trim() === "" || RATE.test(rate) ? null : "Write a rate such as 5/s, 100/m, 1000/h or 10/d.";
  const countMistake = (text: string) => (readCount(text) === undefined ? "Give a whole number from 1 to 1,000,000." : null);
  const burstMistake = burst.trim() !== "" && rate.trim() === "" ? "A burst goes with a rate." : countMistake(burst);
  const isNone = rate.trim() === "" && concurrency.trim() === "";
  const wanted = (): WantedLimit => ({
    of: joinOf(of),
    rate: rate.trim() || null,
    burst: readCount(burst) ?? null,
    concurrency: readCount(concurrency) ?? null,
    per: isPerKey && !isNone ? "key" : null,
    note,
  });
  return (
    <FormDialog
      title={limit ? "Change a limit" : "Set a limit"}
      button={limit ? "Change the limit" : "Set the limit"}
      off={nameMistake(of) ?? rateMistake ?? burstMistake ?? countMistake(concurrency)}
      extra={
        limit?.origin === "hand" && (
          <Button needs="operator" onClick={() => onRemove(limit)}>
            Remove…
          </Button>
        )
      }
      run={() => put("limits", wanted())}
      onDone={onDone}
      onClose={onClose}
    >
      <OfField kinds={["type", "queue"]} value={of} onChange={setOf} fixed={limit !== null} />
      <div class="of-field even">
        <Field label="Starts" value={rate} onInput={setRate} placeholder="100/m" hint="How often tasks may start." error={rateMistake} autoFocus={limit !== null} />
        <Field label="Burst" value={burst} onInput={setBurst} placeholder="as many as in a second" hint="Starts at once after a pause." error={burstMistake} />
      </div>
      <Field label="At a time" value={concurrency} onInput={setConcurrency} placeholder="no limit" hint="How many may run at the same time." error={countMistake(concurrency)} />
      <Check checked={isPerKey} onChange={setPerKey}>
        for each key by itself
      </Check>
      <NoteField value={note} onInput={setNote} />
      {isNone && <p class="small c-heal">Without a rate and a number there is no limit, whatever the code says.</p>}
      {limit?.origin === "code" && <p class="small dim">It holds instead of what the code says, within seconds, until it is removed.</p>}
    </FormDialog>
  );
}

export function RemoveLimitDialog({ limit, onDone, onClose }: DialogProps & { limit: Limit }) {
  const [note, setNote] = useState("");
  return (
    <FormDialog
      title="Remove a limit"
      sentence={<>Take back the limit of <Text>{limit.of}</Text> that was set by hand. What the code says holds again; {plural(limit.waiting, "task")} that {limit.waiting === 1 ? "waits" : "wait"} go by it.</>}
      button="Remove the limit"
      run={() => post("limits/remove", { of: limit.of, note })}
      onDone={onDone}
      onClose={onClose}
    >
      <AuditNoteField value={note} onInput={setNote} />
    </FormDialog>
  );
}

export function OpenBreakerDialog({ name, onDone, onClose }: DialogProps & { name: string }) {
  const [of, setOf] = useState({ kind: "type", name });
  const [end, setEnd] = useState(SOON);
  const [note, setNote] = useState("");
  const wanted = (): WantedStop => ({ of: joinOf(of), note, until: untilOf(end) });
  return (
    <FormDialog title="Open a breaker" sentence="No task starts behind an open breaker. What runs goes on; what waits loses no retry." button="Open the breaker" off={nameMistake(of) ?? endMistake(end)} run={() => post("breakers/open", wanted())} onDone={onDone} onClose={onClose}>
      <OfField kinds={["type", "target"]} value={of} onChange={setOf} />
      <EndField value={end} onChange={setEnd} without="open until somebody closes it" />
      <NoteField value={note} onInput={setNote} />
    </FormDialog>
  );
}

export function CloseBreakerDialog({ breaker, onDone, onClose }: DialogProps & { breaker: Breaker }) {
  const [note, setNote] = useState("");
  return (
    <FormDialog
      title="Close a breaker"
      sentence={<>Let tasks behind the breaker of <Text>{breaker.of}</Text> start again. Failures count from 0, and {plural(breaker.waiting, "task")} that {breaker.waiting === 1 ? "waits" : "wait"} start within seconds.</>}
      button="Close the breaker"
      run={() => post("breakers/close", { of: breaker.of, note })}
      onDone={onDone}
      onClose={onClose}
    >
      <AuditNoteField value={note} onInput={setNote} />
    </FormDialog>
  );
}

export function SwitchOffDialog({ onDone, onClose }: DialogProps) {
  const [of, setOf] = useState({ kind: "type", name: "" });
  const [end, setEnd] = useState(SOON);
  const [note, setNote] = useState("");
  const wanted = (): WantedStop => ({ of: joinOf(of), note, until: untilOf(end) });
  return (
    <FormDialog title="Switch off" sentence="What is switched off does not start, in any process. What runs goes on; what is submitted waits." button="Switch it off" off={nameMistake(of) ?? endMistake(end)} run={() => post("switches/off", wanted())} onDone={onDone} onClose={onClose}>
      <OfField kinds={["type", "key", "tag"]} value={of} onChange={setOf} />
      <EndField value={end} onChange={setEnd} without="off until somebody switches it on" />
      <NoteField value={note} onInput={setNote} />
    </FormDialog>
  );
}

export function SwitchOnDialog({ off, onDone, onClose }: DialogProps & { off: SwitchedOff }) {
  const [note, setNote] = useState("");
  return (
    <FormDialog
      title="Switch on"
      sentence={<>Start tasks of <Text>{off.of}</Text> again. {plural(off.waiting, "task")} that {off.waiting === 1 ? "waits" : "wait"} for it start within seconds.</>}
      button="Switch it on"
      run={() => post("switches/on", { of: off.of, note })}
      onDone={onDone}
      onClose={onClose}
    >
      <AuditNoteField value={note} onInput={setNote} />
    </FormDialog>
  );
}
