import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { StatusShape } from "../icons/StatusShape";

interface FrameProps {
  label: string;
  hint?: ComponentChildren;
  /** What is wrong with the value, under the field. */
  error?: string | null;
}

interface FieldFrameProps extends FrameProps {
  children: (ids: { id: string; describedBy: string | undefined; invalid: boolean }) => ComponentChildren;
}

/** A label above a control, a hint and a mistake below it, all tied together for readers. */
export function FieldFrame({ label, hint, error, children }: FieldFrameProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, describedBy: described || undefined, invalid: Boolean(error) })}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {error && (
        <span class="wrong" id={`${id}-error`} role="alert">
          <StatusShape status="failed" />
          {error}
        </span>
      )}
    </div>
  );
}

interface FieldProps extends FrameProps {
  value: string;
  onInput: (value: string) => void;
  onBlur?: () => void;
  type?: "text" | "password" | "number" | "search" | "datetime-local";
  placeholder?: string;
  /** More than one makes it a text area. */
  rows?: number;
  /** Set in the mono face: cron lines, JSON, ids. */
  code?: boolean;
  disabled?: boolean;
  required?: boolean;
  autoFocus?: boolean;
  autoComplete?: string;
  name?: string;
  /** Values that are offered while one types. */
  suggestions?: readonly string[];
}

/** A field for text. */
export function Field(props: FieldProps) {
  const { value, onInput, onBlur, rows = 1, code, type = "text", suggestions } = props;
  return (
    <FieldFrame label={props.label} hint={props.hint} error={props.error}>
      {({ id, describedBy, invalid }) => {
        const shared = {
          id,
          class: code ? "input code" : "input",
          value,
          placeholder: props.placeholder,
          name: props.name,
          disabled: props.disabled,
          required: props.required,
          autoFocus: props.autoFocus,
          "aria-describedby": describedBy,
          "aria-invalid": invalid,
          onBlur: () => onBlur?.(),
          spellcheck: !code,
        };
        if (rows > 1) return <textarea {...shared} rows={rows} onInput={(event) => onInput(event.currentTarget.value)} />;
        return (
          <>
            <input
              {...shared}
              type={type as "text"}
              autocomplete={props.autoComplete ?? "off"}
              list={suggestions ? `${id}-list` : undefined}
              onInput={(event) => onInput(event.currentTarget.value)}
            />
            {suggestions && (
              <datalist id={`${id}-list`}>
                {suggestions.map((text) => (
                  <option value={text} />
                ))}
              </datalist>
            )}
          </>
        );
      }}
    </FieldFrame>
  );
}
