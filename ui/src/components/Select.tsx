import { Icon } from "../icons/Icon";
import { FieldFrame } from "./Field";

export interface Option<Value extends string> {
  value: Value;
  label: string;
}

interface SelectProps<Value extends string> {
  label: string;
  options: readonly Option<Value>[];
  value: Value;
  onChange: (value: Value) => void;
  hint?: string;
  error?: string | null;
  disabled?: boolean;
  /** The label is only for readers; the place explains itself. */
  hideLabel?: boolean;
}

/** A choice of many. It is the browser's own, which works everywhere. */
export function Select<Value extends string>(props: SelectProps<Value>) {
  const { label, options, value, onChange, hint, error, disabled, hideLabel } = props;
  const control = (id?: string, describedBy?: string) => (
    <span class="select-box">
      <select
        class="select"
        id={id}
        value={value}
        disabled={disabled}
        aria-label={hideLabel ? label : undefined}
        aria-describedby={describedBy}
        onChange={(event) => onChange(event.currentTarget.value as Value)}
      >
        {options.map((option) => (
          <option value={option.value} selected={option.value === value}>
            {option.label}
          </option>
        ))}
      </select>
      <Icon name="down" />
    </span>
  );
  if (hideLabel) return control();
  return (
    <FieldFrame label={label} hint={hint} error={error ?? null}>
      {({ id, describedBy }) => control(id, describedBy)}
    </FieldFrame>
  );
}
