export interface Piece {
  text: string;
  /** Set for a letter that is not to be seen as such: its number and what it is. */
  mark?: string;
}

/**
 * Control letters (but not tab and line end), those that are drawn as nothing, and those that turn the direction of
 * what follows: each can make a text look like another one.
 */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/u;

function codeOf(letter: string): string {
  return `U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Cuts a text into what may be shown as it is and what must be named instead. */
export function splitHidden(text: string): Piece[] {
  if (!HIDDEN.test(text)) return [{ text }];
  const pieces: Piece[] = [];
  let plain = "";
  for (const letter of text) {
    if (!HIDDEN.test(letter)) {
      plain += letter;
      continue;
    }
    if (plain) pieces.push({ text: plain });
    plain = "";
    pieces.push({ text: letter, mark: codeOf(letter) });
  }
  if (plain) pieces.push({ text: plain });
  return pieces;
}

/** The same as one plain text, for titles and labels, which cannot hold marks. */
export function plainText(text: string): string {
  return splitHidden(text)
    .map((piece) => (piece.mark ? `[${piece.mark}]` : piece.text))
    .join("");
}
