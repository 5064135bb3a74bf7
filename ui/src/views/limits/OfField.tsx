import { useResource } from "../../api/resource";
import { Field } from "../../components/Field";
import { Select } from "../../components/Select";
import type { Of } from "./of";

const KINDS: Readonly<Record<string, { label: string; hint: string; placeholder: string }>> = {
  type: { label: "Type", hint: "All tasks of this type.", placeholder: "charge_payment" },
  queue: { label: "Queue", hint: "All tasks of this queue.", placeholder: "media" },
  key: { label: "Key", hint: "All tasks with this key.", placeholder: "acme" },
  tag: { label: "Tag", hint: "All tasks with this tag, as name=value.", placeholder: "customer=acme" },
  target: { label: "Target", hint: "All tasks to this target, as executor/target.", placeholder: "http/billing" },
};

interface OfFieldProps {
  kinds: readonly string[];
  value: Of;
  onChange: (value: Of) => void;
  /** Of a rule that is changed it stays as it is. */
  fixed?: boolean;
}

/** Of what a rule is: a kind, and a name with those that are known offered. */
export function OfField({ kinds, value, onChange, fixed }: OfFieldProps) {
  const types = useResource<{ name: string }[]>(() => "types");
  const queues = useResource<{ name: string }[]>(() => "queues");
  const known = value.kind === "type" ? types.data.value : value.kind === "queue" ? queues.data.value : null;
  const kind = KINDS[value.kind];
  return (
    <div class="of-field">
      <Select label="What" options={kinds.map((one) => ({ value: one, label: KINDS[one]?.label ?? one }))} value={value.kind} disabled={fixed ?? false} onChange={(next) => onChange({ kind: next, name: "" })} />
      <Field
        label="Name"
        value={value.name}
        onInput={(name) => onChange({ ...value, name })}
        disabled={fixed ?? false}
        autoFocus={!fixed}
        {...(kind ? { hint: kind.hint, placeholder: kind.placeholder } : {})}
        {...(known ? { suggestions: known.map((one) => one.name) } : {})}
      />
    </div>
  );
}

/** Why the name will not do yet. */
export function nameMistake({ kind, name }: Of): string | null {
  if (name.trim() === "") return "Name what it is of first.";
  if (kind === "tag" && !/^[^=]+=./.test(name)) return "Write the tag as name=value.";
  return kind === "target" && !/^[^/]+\/./.test(name) ? "Write the target as executor/target." : null;
}

export function joinOf({ kind, name }: Of): string {
  return `${kind}:${name.trim()}`;
}
