import type { PayloadSchema, TypeRow } from "../../api/types/queues";

export interface Parameter {
  name: string;
  type: string;
  isRequired: boolean;
  /** As JSON; null where there is none. */
  fallback: string | null;
}

const DEFS = "#/$defs/";
const DEEPEST = 5;

function follow(schema: PayloadSchema, root: PayloadSchema): PayloadSchema {
  const name = schema.$ref?.startsWith(DEFS) ? schema.$ref.slice(DEFS.length) : null;
  return (name !== null && Object.hasOwn(root.$defs ?? {}, name) ? root.$defs?.[name] : null) ?? schema;
}

const WORDS: Readonly<Record<string, string>> = { string: "str", integer: "int", number: "float", boolean: "bool", array: "list", object: "dict", null: "None" };

/** The type of a value, in the words of Python. */
export function typeText(schema: PayloadSchema, root: PayloadSchema, depth = 0): string {
  const found = follow(schema, root);
  if (depth > DEEPEST) return "…";
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (found.anyOf) return found.anyOf.map((one) => typeText(one, root, depth + 1)).join(" | ");
  if (Array.isArray(found.type)) return found.type.map((name) => WORDS[name] ?? name).join(" | ");
  if (found.type === "array" && found.items) return `list[${typeText(found.items, root, depth + 1)}]`;
  if (found.type === "object" && found.title && depth > 0) return found.title;
  if (found.type === "string" && found.format) return found.format;
  return found.type === undefined ? "any" : (WORDS[found.type] ?? found.type);
}

/** What a payload has, in order; null where the schema is not of that kind. */
export function parametersOf(schema: PayloadSchema | null): Parameter[] | null {
  if (!schema) return null;
  const found = follow(schema, schema);
  if (!found.properties) return null;
  const required = new Set(found.required);
  return Object.entries(found.properties).map(([name, one]) => ({
    name,
    type: typeText(one, schema, 1),
    isRequired: required.has(name),
    fallback: one.default === undefined ? null : JSON.stringify(one.default),
  }));
}

/** "send_email(to: str, subject: str)"; without a schema only the name. */
export function signatureOf(name: string, schema: PayloadSchema | null): string {
  const parameters = parametersOf(schema);
  if (!parameters) return name;
  const parts = parameters.map((one) => `${one.name}: ${one.type}${one.isRequired ? "" : ` = ${one.fallback ?? "…"}`}`);
  return `${name}(${parts.join(", ")})`;
}

/** Options of a type that say how it is run, in words: "queue email", "max_retry 2". */
export function policiesOf(options: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(options)
    .filter(([name, value]) => name !== "queue" && value !== null && value !== undefined)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`);
}

/** The queue that tasks of a type go to unless they say otherwise. */
function homeQueue(options: TypeRow["options"]): string {
  return typeof options.queue === "string" ? options.queue : "default";
}

/** The queues that tasks of a type go to: those in which some were seen, else the one that its options name. */
export function queuesOf({ seen_in, options }: Pick<TypeRow, "seen_in" | "options">): readonly string[] {
  // Beside this server there may be an older one, which does not send it.
  return seen_in?.length ? seen_in : [homeQueue(options)];
}
