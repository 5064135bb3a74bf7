import { quote, tokenise, type Token } from "./tokens";

/** The filter of a log: one value of each name. */
export type Parts<Name extends string> = Partial<Record<Name, string>>;

function mistakeIn<Name extends string>(token: Token, parts: Parts<Name>, name: Name): string | null {
  if (token.negated) return "The log can be asked for what something is, not for what it is not.";
  if (token.values.length > 1) return `The log can be asked for one ${name} at a time.`;
  if (token.comparison !== "" && token.comparison !== ":") return `After ${name} stands a colon.`;
  return parts[name] === undefined ? null : `There are two of ${name}; the log can be asked for one at a time.`;
}

/** The parts of a text, and what is wrong with it. What is wrong is left out. `nameOfWord` says what a bare word is. */
export function readParts<Name extends string>(text: string, names: readonly Name[], nameOfWord: (word: string) => Name): { filter: Parts<Name>; mistake: string | null } {
  const filter: Parts<Name> = {};
  let mistake: string | null = null;
  for (const token of tokenise(text)) {
    const value = token.values[0] ?? "";
    const name = token.name === "" ? nameOfWord(value) : names.find((one) => one === token.name);
    // The bar itself marks names that it does not know.
    if (name === undefined || value === "") continue;
    const wrong = mistakeIn(token, filter, name);
    mistake ??= wrong;
    if (!wrong) filter[name] = value;
  }
  return { filter, mistake };
}

export function writeParts<Name extends string>(filter: Parts<Name>, names: readonly Name[]): string {
  return names.flatMap((name) => (filter[name] ? [`${name}:${quote(filter[name])}`] : [])).join(" ");
}
