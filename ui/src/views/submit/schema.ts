import type { Json } from "../../components/JsonViewer";

type Node = { [name: string]: Json };

/** One field of a payload, as far as a form can ask for it; anything else is asked for as JSON. */
export type FieldKind = "text" | "integer" | "number" | "boolean" | "choice" | "group" | "json";

export interface FieldShape {
  name: string;
  kind: FieldKind;
  isRequired: boolean;
  isNullable: boolean;
  hint: string;
  /** The value that the handler takes if none is given. */
  fallback: Json | undefined;
  choices: readonly Json[];
  fields: readonly FieldShape[];
}

const DEEPEST = 4;

function isNode(value: Json | undefined): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function resolve(node: Node, root: Node, steps = 0): Node {
  const ref = node.$ref;
  if (typeof ref !== "string" || steps > 8) return node;
  const name = ref.split("/").at(-1) ?? "";
  const definitions = isNode(root.$defs) ? root.$defs : {};
  const found = definitions[name.replaceAll("~1", "/").replaceAll("~0", "~")];
  return isNode(found) ? resolve({ ...found, ...withoutRef(node) }, root, steps + 1) : node;
}

function withoutRef(node: Node): Node {
  const { $ref: _, ...rest } = node;
  return rest;
}

/** `X | None` is X that may be left empty. */
function withoutNull(node: Node, root: Node): { node: Node; isNullable: boolean } {
  if (!Array.isArray(node.anyOf)) return { node, isNullable: false };
  const parts = node.anyOf.filter(isNode).map((part) => resolve(part, root));
  const rest = parts.filter((part) => part.type !== "null");
  const isNullable = rest.length < parts.length;
  const { anyOf: _, ...shared } = node;
  return rest.length === 1 && rest[0] ? { node: { ...rest[0], ...shared }, isNullable } : { node, isNullable };
}

function kindOf(node: Node, depth: number): FieldKind {
  if (Array.isArray(node.enum)) return "choice";
  if (node.type === "string") return "text";
  if (node.type === "integer" || node.type === "number" || node.type === "boolean") return node.type;
  return node.type === "object" && isNode(node.properties) && depth < DEEPEST ? "group" : "json";
}

const WORDS: readonly (readonly [string, (value: Json) => string])[] = [
  ["description", (value) => String(value)],
  ["format", (value) => (value === "date-time" ? "a time such as 2030-01-31T09:00:00Z" : String(value))],
  ["minimum", (value) => `at least ${String(value)}`],
  ["maximum", (value) => `at most ${String(value)}`],
  ["maxLength", (value) => `at most ${String(value)} letters`],
];

function fieldOf(name: string, raw: Node, root: Node, isRequired: boolean, depth: number): FieldShape {
  const { node, isNullable } = withoutNull(resolve(raw, root), root);
  const hints = WORDS.flatMap(([key, words]) => (node[key] === undefined ? [] : [words(node[key])]));
  const kind = kindOf(node, depth);
  return {
    name,
    kind,
    isRequired,
    isNullable,
    hint: hints.join(", "),
    fallback: node.default,
    choices: Array.isArray(node.enum) ? node.enum : [],
    fields: kind === "group" ? fieldsOf(node, root, depth + 1) : [],
  };
}

function fieldsOf(node: Node, root: Node, depth: number): FieldShape[] {
  const required = Array.isArray(node.required) ? node.required : [];
  return Object.entries(isNode(node.properties) ? node.properties : {}).flatMap(([name, raw]) => (isNode(raw) ? [fieldOf(name, raw, root, required.includes(name), depth)] : []));
}

/** The fields of a payload by its JSON Schema; null where a form cannot be made of it. */
export function formOf(schema: Json | undefined): readonly FieldShape[] | null {
  if (!isNode(schema)) return null;
  const node = resolve(schema, schema);
  return node.type === "object" ? fieldsOf(node, schema, 0) : null;
}

/** What is typed into a form: texts, and boxes. Names of groups are joined by a dot that no field has by itself. */
export type Draft = Readonly<Record<string, string | boolean>>;

const JOIN = "\u0000";

export function placeOf(path: string, name: string): string {
  return path ? `${path}${JOIN}${name}` : name;
}

function textOfValue(value: Json | undefined, kind: FieldKind): string | boolean {
  if (kind === "boolean") return value === true;
  if (value === undefined || value === null) return "";
  if (kind === "text" && typeof value === "string") return value;
  return kind === "choice" || kind === "json" ? JSON.stringify(value, null, kind === "json" ? 2 : undefined) : String(value);
}

/** The draft that shows a payload, with what the schema says where it says nothing. */
export function draftOf(fields: readonly FieldShape[], payload: Json, path = ""): Record<string, string | boolean> {
  const given = isNode(payload) ? payload : {};
  const draft: Record<string, string | boolean> = {};
  for (const field of fields) {
    const place = placeOf(path, field.name);
    const value = given[field.name] ?? field.fallback;
    if (field.kind === "group") Object.assign(draft, draftOf(field.fields, value ?? {}, place));
    else draft[place] = textOfValue(value, field.kind);
  }
  return draft;
}

/** Whether a form can show a payload without losing any of it. */
export function fitsForm(fields: readonly FieldShape[], payload: Json): boolean {
  if (payload === null) return true;
  if (!isNode(payload)) return false;
  return Object.entries(payload).every(([name, value]) => {
    const field = fields.find((one) => one.name === name);
    return field !== undefined && (field.kind !== "group" || fitsForm(field.fields, value));
  });
}

export interface Read {
  value: { [name: string]: Json };
  mistakes: Readonly<Record<string, string>>;
}

function readField(field: FieldShape, typed: string): { value?: Json; mistake?: string } {
  if (typed === "" && !(field.kind === "text" && field.isRequired && !field.isNullable)) {
    if (field.isNullable && field.isRequired) return { value: null };
    return field.isRequired ? { mistake: `${field.name} is needed.` } : {};
  }
  if (field.kind === "text") return typed === "" ? { mistake: `${field.name} is needed.` } : { value: typed };
  if (field.kind === "integer") return /^[+-]?\d+$/.test(typed.trim()) ? { value: Number(typed) } : { mistake: "Write a whole number." };
  if (field.kind === "number") return typed.trim() !== "" && Number.isFinite(Number(typed)) ? { value: Number(typed) } : { mistake: "Write a number." };
  try {
    return { value: JSON.parse(typed) as Json };
  } catch {
    return { mistake: "This is not JSON." };
  }
}

/** The payload that a draft makes, and what is wrong with it, by place. */
export function readDraft(fields: readonly FieldShape[], draft: Draft, path = ""): Read {
  const value: { [name: string]: Json } = {};
  const mistakes: Record<string, string> = {};
  for (const field of fields) {
    const place = placeOf(path, field.name);
    if (field.kind === "group") {
      const inner = readDraft(field.fields, draft, place);
      Object.assign(mistakes, inner.mistakes);
      if (field.isRequired || Object.keys(inner.value).length > 0) value[field.name] = inner.value;
    } else if (field.kind === "boolean") value[field.name] = draft[place] === true;
    else {
      const found = readField(field, String(draft[place] ?? ""));
      if (found.mistake) mistakes[place] = found.mistake;
      else if (found.value !== undefined) value[field.name] = found.value;
    }
  }
  return { value, mistakes };
}
