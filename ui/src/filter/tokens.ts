/**
 * The words of a filter (`q`), for display and completion. The server judges them; nothing here decides what is valid.
 *
 *     status:ready,running -queue:"slow lane" run>10s order:88397
 */

export type Comparison = ":" | ">" | "<" | ">=" | "<=";

export interface Token {
  /** As it stands in the text, quotes and all. */
  raw: string;
  start: number;
  end: number;
  negated: boolean;
  /** The qualifier, empty for a bare word. */
  name: string;
  comparison: Comparison | "";
  /** Alternatives; a comma means or. */
  values: string[];
  /** False while a quote is still open. */
  closed: boolean;
}

interface Word {
  raw: string;
  start: number;
  end: number;
  closed: boolean;
}

/** Splits at spaces that are not inside quotes. */
function splitWords(text: string): Word[] {
  const words: Word[] = [];
  let at = 0;
  while (at < text.length) {
    if (text[at] === " ") {
      at += 1;
      continue;
    }
    const start = at;
    let inQuotes = false;
    while (at < text.length && (inQuotes || text[at] !== " ")) {
      if (text[at] === "\\" && inQuotes) at += 1;
      else if (text[at] === '"') inQuotes = !inQuotes;
      at += 1;
    }
    at = Math.min(at, text.length);
    words.push({ raw: text.slice(start, at), start, end: at, closed: !inQuotes });
  }
  return words;
}

/** Splits `a,"b,c"` at its commas and takes the quotes off. */
function splitValues(text: string): string[] {
  const values: string[] = [];
  let value = "";
  let inQuotes = false;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    if (letter === "\\" && inQuotes && at + 1 < text.length) {
      at += 1;
      value += text[at] ?? "";
    } else if (letter === '"') inQuotes = !inQuotes;
    else if (letter === "," && !inQuotes) {
      values.push(value);
      value = "";
    } else value += letter;
  }
  values.push(value);
  return values;
}

const HEAD = /^(-?)([A-Za-z_][\w.-]*)(>=|<=|:|>|<)/;

function readWord(word: Word): Token {
  const head = HEAD.exec(word.raw);
  if (!head) {
    const negated = word.raw.startsWith("-") && word.raw.length > 1;
    const rest = negated ? word.raw.slice(1) : word.raw;
    return { ...word, negated, name: "", comparison: "", values: [splitValues(rest).join(",")] };
  }
  const [whole, sign, name, comparison] = head;
  return {
    ...word,
    negated: sign === "-",
    name: name ?? "",
    comparison: comparison as Comparison,
    values: splitValues(word.raw.slice(whole.length)),
  };
}

export function tokenise(text: string): Token[] {
  return splitWords(text).map(readWord);
}

/** Puts quotes around a value that needs them. */
export function quote(value: string): string {
  if (value !== "" && !/[\s",\\]/.test(value)) return value;
  return `"${value.replace(/["\\]/g, (letter) => `\\${letter}`)}"`;
}

/** A token as text, from its parts. */
export function tokenText(name: string, values: readonly string[], comparison: Comparison = ":", negated = false): string {
  return `${negated ? "-" : ""}${name}${comparison}${values.map(quote).join(",")}`;
}

/** The filter without its n-th token. */
export function withoutToken(text: string, index: number): string {
  return tokenise(text)
    .filter((_, at) => at !== index)
    .map((token) => token.raw)
    .join(" ");
}

/** The filter with every token of that name replaced by one; no values takes them out. */
export function withToken(text: string, name: string, values: readonly string[], comparison: Comparison = ":"): string {
  const kept = tokenise(text).filter((token) => !(token.name === name && token.comparison === comparison && !token.negated));
  const made = values.length > 0 ? [tokenText(name, values, comparison)] : [];
  return [...kept.map((token) => token.raw), ...made].join(" ");
}

/** The values that a filter asks for under a name; empty when it does not mention it. */
export function valuesOf(text: string, name: string): string[] {
  return tokenise(text)
    .filter((token) => token.name === name && token.comparison === ":" && !token.negated)
    .flatMap((token) => token.values);
}
