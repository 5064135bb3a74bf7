import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface CheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ComponentChildren;
}

export function Check({ checked, onChange, children }: CheckProps) {
  return (
    <label class="choice">
      <input class="ck" type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{children}</span>
    </label>
  );
}

interface RadiosProps<Value extends string> {
  label: string;
  options: readonly { value: Value; label: ComponentChildren }[];
  value: Value;
  onChange: (value: Value) => void;
}

/** A choice of a few that each need a sentence. */
export function Radios<Value extends string>({ label, options, value, onChange }: RadiosProps<Value>) {
  const name = useId();
  return (
    <div class="stack" style={{ gap: "8px" }} role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <label class="choice" key={option.value}>
          <input class="radio" type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
          <span>{option.label}</span>
        </label>
      ))}
    </div>
  );
}
