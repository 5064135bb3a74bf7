import { findQualifier, type Qualifier } from "../filter/qualifiers";
import { quote } from "../filter/tokens";

export interface Suggestion {
  text: string;
  hint?: string;
  count?: number;
  /** It is the beginning of a token: a qualifier that wants its value. */
  isPartial?: boolean;
}

/** Asks for values of a qualifier that begin with what was typed: the top eight, with counts. */
export type ValueSource = (name: string, typed: string, signal: AbortSignal) => Promise<readonly Suggestion[]>;

const MOST = 8;

interface Typed {
  sign: string;
  name: string;
  comparison: string;
  /** Values before the last comma, kept as they are. */
  before: string;
  /** What is being typed now. */
  rest: string;
}

function read(text: string): Typed {
  const found = /^(-?)([A-Za-z_][\w.-]*)(>=|<=|:|>|<)(.*)$/.exec(text);
  if (!found) return { sign: text.startsWith("-") ? "-" : "", name: "", comparison: "", before: "", rest: text.replace(/^-/, "") };
  const [, sign = "", name = "", comparison = "", value = ""] = found;
  const comma = value.lastIndexOf(",");
  return { sign, name, comparison, before: value.slice(0, comma + 1), rest: value.slice(comma + 1).replace(/^"/, "") };
}

/** While no qualifier is complete, the qualifiers that fit; null once values are wanted. */
export function suggestQualifiers(text: string, all: readonly Qualifier[]): Suggestion[] | null {
  const typed = read(text);
  if (typed.comparison) return null;
  return all
    .filter((one) => one.name.startsWith(typed.rest.toLowerCase()))
    .map((one) => ({ text: `${one.name}${one.comparisons[0] ?? ":"}`, hint: one.hint, isPartial: true }))
    .slice(0, typed.rest ? MOST : all.length);
}

export async function suggestValues(text: string, all: readonly Qualifier[], source: ValueSource | undefined, signal: AbortSignal): Promise<readonly Suggestion[]> {
  const typed = read(text);
  const qualifier = findQualifier(typed.name, all);
  if (qualifier?.values) return qualifier.values.filter((value) => value.startsWith(typed.rest)).map((value) => ({ text: value }));
  if (!qualifier || !source || typed.comparison !== ":") return [];
  return (await source(typed.name, typed.rest, signal)).slice(0, MOST);
}

/** The text after a suggestion was taken. */
export function completionOf(text: string, suggestion: Suggestion): string {
  const typed = read(text);
  if (suggestion.isPartial) return `${typed.sign}${suggestion.text}`;
  return `${typed.sign}${typed.name}${typed.comparison}${typed.before}${quote(suggestion.text)}`;
}
