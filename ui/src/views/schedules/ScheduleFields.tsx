import { useResource } from "../../api/resource";
import { Card } from "../../components/Card";
import { Field } from "../../components/Field";
import { Select } from "../../components/Select";
import { type Draft, type FieldName, LABELS, type Mistakes } from "./form";
import { RULES } from "./words";

interface FieldsProps {
  draft: Draft;
  mistakes: Mistakes;
  isNew: boolean;
  set: (name: FieldName, value: string) => void;
  /** What the server reads out of the line, once it does. */
  said?: string | null;
}

const ZONES: readonly string[] = ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])];

type RuleName = keyof typeof RULES;

function Rule({ name, draft, set }: { name: RuleName } & Pick<FieldsProps, "draft" | "set">) {
  const words: Readonly<Record<string, string>> = RULES[name];
  const options = Object.keys(words).map((value) => ({ value, label: value }));
  const hint = words[draft[name]]?.replace(/^\w+: /, "");
  return <Select label={LABELS[name]} options={options} value={draft[name]} onChange={(value) => set(name, value)} {...(hint ? { hint } : {})} />;
}

/** When it runs, and what it does when something comes in between. */
export function WhenFields({ draft, mistakes, set, isNew, said }: FieldsProps) {
  return (
    <Card title="When" padded>
      <div class="fields">
        <div class="wide">
          <Field
            label={LABELS.cron}
            value={draft.cron}
            onInput={(value) => set("cron", value)}
            code
            autoFocus={!isNew}
            placeholder="0 2 * * *"
            error={mistakes.cron ?? null}
            hint={said ? <span class="mid">{said}</span> : "Minute, hour, day of the month, month, day of the week; with six fields seconds come first. Also @hourly, @daily, @weekly."}
          />
        </div>
        <Field label={LABELS.timezone} value={draft.timezone} onInput={(value) => set("timezone", value)} suggestions={ZONES} error={mistakes.timezone ?? null} placeholder="UTC" />
        <Rule name="dst" draft={draft} set={set} />
        <Rule name="overlap" draft={draft} set={set} />
        <Rule name="misfire" draft={draft} set={set} />
        <Field label={LABELS.misfire_grace} value={draft.misfire_grace} onInput={(value) => set("misfire_grace", value)} error={mistakes.misfire_grace ?? null} hint="A tick that is later than this is missed." />
        {draft.misfire === "all" && <Field label={LABELS.misfire_cap} value={draft.misfire_cap} onInput={(value) => set("misfire_cap", value)} error={mistakes.misfire_cap ?? null} hint="Missed ticks that are made up for at once." />}
        <Rule name="on_exhausted" draft={draft} set={set} />
      </div>
    </Card>
  );
}

type Text = { hint?: string; placeholder?: string; suggestions?: readonly string[]; autoFocus?: boolean };

function text({ draft, mistakes, set }: FieldsProps, name: FieldName, more: Text = {}) {
  return <Field label={LABELS[name]} value={draft[name]} onInput={(value) => set(name, value)} error={mistakes[name] ?? null} {...more} />;
}

/** What it is called, and which handler its runs go to. */
export function NameFields(props: FieldsProps) {
  const types = useResource<{ name: string }[]>(() => "types");
  return (
    <Card title="What it runs" padded>
      <div class={props.isNew ? "fields three" : "fields"}>
        {text(props, "type", { suggestions: (types.data.value ?? []).map((type) => type.name), hint: "The handler that each run goes to.", autoFocus: props.isNew })}
        {props.isNew && text(props, "id", { hint: "It cannot be changed later." })}
        {text(props, "name", { hint: "For people; without one the id is shown." })}
      </div>
    </Card>
  );
}

const BY_HANDLER = "as the handler says";

/** What each run is submitted with. */
export function RunFields(props: FieldsProps) {
  const { draft, mistakes, set } = props;
  const queues = useResource<{ name: string }[]>(() => "queues");
  return (
    <Card title="What each run is given" padded>
      <div class="fields">
        <div class="wide">
          <Field label={LABELS.payload} value={draft.payload} onInput={(value) => set("payload", value)} error={mistakes.payload ?? null} rows={4} code hint="JSON; empty for none." />
        </div>
        {text(props, "queue", { suggestions: (queues.data.value ?? []).map((queue) => queue.name), placeholder: BY_HANDLER })}
        {text(props, "priority", { hint: "1 to 10; 10 is the most urgent.", placeholder: BY_HANDLER })}
        {text(props, "max_retry", { placeholder: BY_HANDLER })}
        {text(props, "timeout", { hint: "For example 90s, 5m or 1h.", placeholder: BY_HANDLER })}
        {text(props, "key", { hint: "What its runs are about, for example order:88397." })}
        {text(props, "tags", { hint: "name=value, with commas between." })}
      </div>
    </Card>
  );
}
