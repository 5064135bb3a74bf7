interface Shown {
  shown: string;
  /** None, or an empty list. */
  isNothing: boolean;
}

const NOTHING: Readonly<Record<string, string>> = { None: "none", "()": "none", "{}": "none", "[]": "none", "''": "empty", "not set": "not set" };

/** The value of an option, as somebody would write it in a file: the server sends it as Python does. */
export function readValue(text: string): Shown {
  const nothing = NOTHING[text];
  if (nothing !== undefined) return { shown: nothing, isNothing: true };
  if (text === "True" || text === "False") return { shown: text.toLowerCase(), isNothing: false };
  const quoted = /^(['"])(.*)\1$/s.exec(text);
  if (quoted && !(quoted[2] ?? "").includes(quoted[1] ?? "")) return { shown: quoted[2] ?? "", isNothing: false };
  const list = /^\((.*?),?\)$/s.exec(text);
  return { shown: list ? (list[1] ?? "").replaceAll("'", "") : text, isNothing: false };
}
