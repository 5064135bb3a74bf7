import type { KnownQueue, KnownType } from "../../api/types/tasks";
import { Field } from "../../components/Field";
import { Segments } from "../../components/Segments";
import { Select } from "../../components/Select";
import { zone } from "../../state/prefs";
import type { Mistakes, OptionsDraft } from "./options";

interface OptionFieldsProps {
  draft: OptionsDraft;
  mistakes: Mistakes;
  /** It was tried to submit: what is still missing may be told. */
  isTried: boolean;
  onChange: (change: Partial<OptionsDraft>) => void;
  type: KnownType | null;
  queues: readonly KnownQueue[];
}

const PRIORITIES = [
  { value: "", label: "as the type says" },
  { value: "10", label: "10, high" },
  ...[9, 8, 7, 6].map((value) => ({ value: String(value), label: String(value) })),
  { value: "5", label: "5, normal" },
  ...[4, 3, 2].map((value) => ({ value: String(value), label: String(value) })),
  { value: "1", label: "1, low" },
];

const WHEN = [
  { value: "now", label: "Now" },
  { value: "delay", label: "After a while" },
  { value: "at", label: "At a time" },
] as const;

/** What the type says of an option, for the place of a field that is left empty. */
function said(type: KnownType | null, option: string, otherwise: string): string {
  const value = type?.options[option];
  return typeof value === "string" || typeof value === "number" ? String(value) : otherwise;
}

/** Queue, time, key and the rest. All may be left empty: then the options of the type hold. */
export function OptionFields({ draft, mistakes, isTried, onChange, type, queues }: OptionFieldsProps) {
  return (
    <>
      <div class="fields">
        <div class="field wide">
          <span class="label" id="when-label">
            When it runs
          </span>
          <div class="row">
            <Segments label="When it runs" options={WHEN} value={draft.when} onChange={(when) => onChange({ when })} />
          </div>
        </div>
        {draft.when === "delay" && <Field label="After" value={draft.delay} onInput={(delay) => onChange({ delay })} code hint="For example 90s, 10m, 2h or 1d." error={mistakes.delay ?? null} />}
        {draft.when === "at" && <Field label="At" type="datetime-local" value={draft.at} onInput={(at) => onChange({ at })} hint={`In the zone ${zone.value}.`} error={draft.at || isTried ? (mistakes.at ?? null) : null} />}
      </div>
      <div class="fields">
        <Field label="Queue" value={draft.queue} onInput={(queue) => onChange({ queue })} placeholder={said(type, "queue", "default")} suggestions={queues.map((queue) => queue.name)} error={mistakes.queue ?? null} />
        <Select label="Priority" options={PRIORITIES} value={draft.priority} onChange={(priority) => onChange({ priority })} />
        <Field label="Key" value={draft.key} onInput={(key) => onChange({ key })} hint="Whom it concerns, for example order:88397. Tasks can be found by it." />
        <Field label="Tags" value={draft.tags} onInput={(tags) => onChange({ tags })} hint="For example env=prod shop=paris." error={mistakes.tags ?? null} />
        <Field label="Retries" value={draft.maxRetry} onInput={(maxRetry) => onChange({ maxRetry })} placeholder={said(type, "max_retry", "as the type says")} hint="After the first attempt." code error={mistakes.maxRetry ?? null} />
        <Field label="Timeout" value={draft.timeout} onInput={(timeout) => onChange({ timeout })} placeholder={said(type, "timeout", "as the type says")} hint="Of one attempt, for example 30s." code error={mistakes.timeout ?? null} />
        <Field label="Dedup key" value={draft.dedupKey} onInput={(dedupKey) => onChange({ dedupKey })} hint="It is refused while another task holds this key." />
        <Select
          label="Holds the dedup key"
          options={[
            { value: "", label: "for a time" },
            { value: "queued", label: "until it starts" },
            { value: "unfinished", label: "until it ends" },
          ]}
          value={draft.unique}
          onChange={(unique) => onChange({ unique })}
          disabled={!draft.dedupKey}
        />
        {draft.dedupKey && draft.unique === "" && <Field label="For how long" value={draft.dedupTtl} onInput={(dedupTtl) => onChange({ dedupTtl })} placeholder="as configured" hint="For example 1h." code error={mistakes.dedupTtl ?? null} />}
      </div>
    </>
  );
}
