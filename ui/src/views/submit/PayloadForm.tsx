import { Check } from "../../components/Check";
import { Field } from "../../components/Field";
import { Select } from "../../components/Select";
import { plainText } from "../../text/split";
import { type Draft, type FieldShape, placeOf } from "./schema";

interface PayloadFormProps {
  fields: readonly FieldShape[];
  draft: Draft;
  mistakes: Readonly<Record<string, string>>;
  onChange: (place: string, value: string | boolean) => void;
  path?: string;
}

/** A field for each parameter of a handler, by its schema. */
export function PayloadForm({ fields, draft, mistakes, onChange, path = "" }: PayloadFormProps) {
  return (
    <>
      {fields.map((field) => {
        const place = placeOf(path, field.name);
        if (field.kind === "group") {
          return (
            <fieldset class="group" key={place}>
              <legend>{labelOf(field)}</legend>
              <PayloadForm fields={field.fields} draft={draft} mistakes={mistakes} onChange={onChange} path={place} />
            </fieldset>
          );
        }
        return <One key={place} field={field} value={draft[place] ?? ""} mistake={mistakes[place] ?? null} onChange={(value) => onChange(place, value)} />;
      })}
    </>
  );
}

function labelOf(field: FieldShape): string {
  return `${plainText(field.name)}${field.isRequired ? "" : " (may be left out)"}`;
}

const KIND_WORDS: Readonly<Partial<Record<FieldShape["kind"], string>>> = { integer: "a whole number", number: "a number", text: "text", json: "JSON" };

interface OneProps {
  field: FieldShape;
  value: string | boolean;
  mistake: string | null;
  onChange: (value: string | boolean) => void;
}

function One({ field, value, mistake, onChange }: OneProps) {
  const hint = [KIND_WORDS[field.kind], plainText(field.hint)].filter(Boolean).join(", ");
  if (field.kind === "boolean") {
    return (
      <Check checked={value === true} onChange={onChange}>
        {plainText(field.name)}
        {field.hint && <span class="dim small"> {plainText(field.hint)}</span>}
      </Check>
    );
  }
  if (field.kind === "choice") {
    const choices = field.choices.map((choice) => ({ value: JSON.stringify(choice), label: plainText(String(choice)) }));
    return <Select label={labelOf(field)} options={[{ value: "", label: "–" }, ...choices]} value={String(value)} onChange={onChange} error={mistake} />;
  }
  return <Field label={labelOf(field)} value={String(value)} onInput={onChange} hint={hint} error={mistake} code={field.kind !== "text"} rows={field.kind === "json" ? 4 : 1} />;
}
