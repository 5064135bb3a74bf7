import { type Token, tokenise } from "../../filter/tokens";

function listed(values: readonly string[], word: "or" | "and" = "or"): string {
  return values.length > 1 ? `${values.slice(0, -1).join(", ")} ${word} ${values.at(-1)}` : (values[0] ?? "");
}

const COMPARED: Readonly<Record<string, readonly [more: string, less: string]>> = {
  run: ["run longer than", "run shorter than"],
  wait: ["wait longer than", "wait shorter than"],
  attempt: ["are past attempt", "are before attempt"],
};

const WAITS: Readonly<Record<string, string>> = { time: "their time", tasks: "other tasks", paused: "the end of a pause" };

function submittedWords(token: Token): string {
  const value = token.values[0] ?? "";
  const isMoment = value.includes("-");
  const isMore = token.comparison.startsWith(">");
  if (isMoment) return `were submitted ${isMore ? "after" : "before"} ${value}`;
  return isMore ? `were submitted more than ${value} ago` : `were submitted within the last ${value}`;
}

/** One condition as the end of "tasks that …". */
function wordsOf(token: Token): string {
  const not = token.negated;
  const values = listed(token.values);
  if (token.name === "submitted") return submittedWords(token);
  const compared = COMPARED[token.name];
  if (compared && token.comparison !== ":") return `${not ? "do not " : ""}${token.comparison.startsWith(">") ? compared[0] : compared[1]} ${values}`;
  if (token.name === "status") return `${not ? "are not" : "are"} ${values}`;
  if (token.name === "waits") return `${not ? "do not wait for" : "wait for"} ${listed(token.values.map((value) => WAITS[value] ?? `a ${value}`))}`;
  if (token.name === "error") return `${not ? "did not fail" : "failed"} with ${values}`;
  if (token.name === "worker") return `${not ? "are not" : "are"} on worker ${values}`;
  if (token.name.startsWith("tag.")) return `${not ? "do not have" : "have"} the tag ${token.name.slice(4)}=${values}`;
  if (token.name === "id") return token.values.length > 3 ? `are among ${token.values.length} ids` : `have the id ${values}`;
  return `${not ? "are not of" : "are of"} ${token.name || "type"} ${values}`;
}

/** A filter in words: "of type charge_payment that wait for a breaker". */
export function filterInWords(filter: string): string {
  const tokens = tokenise(filter);
  const type = tokens.find((token) => (token.name === "type" || token.name === "") && !token.negated);
  const rest = tokens.filter((token) => token !== type).map(wordsOf);
  const ofType = type ? `of type ${listed(type.values)}` : "";
  return [ofType, rest.length > 0 ? `that ${listed(rest, "and")}` : ""].filter(Boolean).join(" ");
}
