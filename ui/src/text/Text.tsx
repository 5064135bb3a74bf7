import { splitHidden } from "./split";

interface TextProps {
  children: string | number | null | undefined;
}

/**
 * Text that came from outside: names, keys, errors, payloads. It cannot turn the direction of what stands beside it, and
 * letters that one would not see are named. Use it for everything that the API sends.
 */
export function Text({ children }: TextProps) {
  if (children === null || children === undefined) return null;
  const pieces = splitHidden(String(children));
  if (pieces.length === 1 && !pieces[0]?.mark) return <bdi>{pieces[0]?.text}</bdi>;
  return (
    <bdi>
      {pieces.map((piece) =>
        piece.mark ? (
          <span class="hidden-letter" title="A letter that is not visible or changes the direction of text">
            {piece.mark}
          </span>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}
