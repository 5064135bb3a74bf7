import { formatCount } from "../format/numbers";
import { useKeys } from "../keys/registry";

interface FreshProps {
  /** How many would come in, leave or move. */
  count: number;
  /** "newer tasks". */
  what: string;
  onShow: () => void;
}

/** Over a table: nothing moves unless asked, so what would move is counted. */
export function Fresh({ count, what, onShow }: FreshProps) {
  useKeys([{ keys: ".", text: "Show what is newer", group: "List", when: () => count > 0, run: onShow }]);
  if (count === 0) return null;
  return (
    <button type="button" class="fresh" onClick={onShow}>
      {formatCount(count)} {what} <b>Show them</b> <kbd class="no-phone">.</kbd>
    </button>
  );
}
