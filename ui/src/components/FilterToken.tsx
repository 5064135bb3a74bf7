import type { Token } from "../filter/tokens";
import { Icon } from "../icons/Icon";
import { plainText } from "../text/split";
import { Text } from "../text/Text";

interface FilterTokenProps {
  token: Token;
  isWrong: boolean;
  onRemove: () => void;
}

/** One condition of a filter, with a cross that takes it out. */
export function FilterToken({ token, isWrong, onRemove }: FilterTokenProps) {
  return (
    <span class={isWrong ? "tok wrong" : "tok"}>
      <span class="v">
        {token.negated && <em>not </em>}
        {token.name && (
          <em>
            <Text>{token.name}</Text>
            {token.comparison}
          </em>
        )}
        {"\u2009"}
        <Text>{token.values.join(" or ")}</Text>
      </span>
      <button type="button" aria-label={`Remove ${plainText(token.raw)}`} onClick={onRemove}>
        <Icon name="close" />
      </button>
    </span>
  );
}
