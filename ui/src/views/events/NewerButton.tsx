import { plural } from "../../format/numbers";
import { useKeys } from "../../keys/registry";

interface NewerButtonProps {
  count: number;
  /** There are more than could be counted. */
  isBound?: boolean;
  /** "newer event". */
  one: string;
  many?: string;
  onShow: () => void;
}

/** What came in the meantime, counted, and shown when asked for. It stands beside the list, which so stays where it is. */
export function NewerButton({ count, isBound = false, one, many, onShow }: NewerButtonProps) {
  const isThere = count > 0 || isBound;
  useKeys([{ keys: ".", text: "Show what is newer", group: "List", when: () => isThere, run: onShow }]);
  if (!isThere) return null;
  return (
    <button type="button" class="newer-rows" onClick={onShow}>
      {isBound ? "More than " : ""}
      {plural(Math.max(count, 1), one, many)} <b>{count === 1 && !isBound ? "Show it" : "Show them"}</b> <kbd class="no-phone">.</kbd>
    </button>
  );
}
