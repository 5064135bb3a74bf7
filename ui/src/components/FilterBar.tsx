import { useEffect, useId, useRef, useState } from "preact/hooks";
import { mistakeOf, type Qualifier, TASK_QUALIFIERS } from "../filter/qualifiers";
import { type Token, tokenise, withoutToken } from "../filter/tokens";
import { formatCount } from "../format/numbers";
import { Icon } from "../icons/Icon";
import { useKeys } from "../keys/registry";
import { Text } from "../text/Text";
import { FilterToken } from "./FilterToken";
import { completionOf, type Suggestion, suggestQualifiers, suggestValues, type ValueSource } from "./filterSuggestions";

export type { Suggestion, ValueSource } from "./filterSuggestions";

interface FilterBarProps {
  /** The filter (`q`), as it stands in the address. */
  value: string;
  onChange: (value: string) => void;
  label: string;
  placeholder?: string;
  qualifiers?: readonly Qualifier[];
  /** Values of a qualifier with their counts, at most eight, from the store's own lists. */
  values?: ValueSource;
  /** What the server refused, in its words. */
  error?: string | null;
  /** Where in the filter that is: the token there is marked. */
  errorAt?: number | null;
}

const DEBOUNCE = 120;

/** The filter in tokens, with completion. `/` focuses; Tab or Enter take; Backspace on empty edits the last token. */
export function FilterBar({ value, onChange, label, placeholder = "Filter: type: queue: key: error: waits: …", qualifiers = TASK_QUALIFIERS, values, error, errorAt }: FilterBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const listId = useId();
  const suggestions = useSuggestions(text, isOpen, qualifiers, values);
  const tokens = tokenise(value);
  const mistake = tokens.map((token) => mistakeOf(token, qualifiers)).find((found) => found !== null) ?? error;

  const isAt = (token: Token) => error !== null && error !== undefined && typeof errorAt === "number" && token.start <= errorAt && errorAt < token.end;

  useKeys([{ keys: "/", text: "Filter", group: "List", run: () => input.current?.focus() }]);
  useEffect(() => setAt(-1), [suggestions]);

  const commit = (added: string) => {
    const typed = added.trim();
    const last = tokenise(typed).at(-1);
    // A qualifier without a value is not finished: it stays to be typed on.
    if (last?.name && last.values.join("") === "") return;
    setText("");
    if (typed) onChange([value, typed].filter(Boolean).join(" "));
  };
  const take = (suggestion: Suggestion) => {
    const next = completionOf(text, suggestion);
    // A qualifier wants its value next; a value completes the token.
    if (suggestion.isPartial) setText(next);
    else {
      commit(next);
      setOpen(false);
    }
    input.current?.focus();
  };
  const editLast = () => {
    const last = tokens.at(-1);
    if (!last) return;
    onChange(withoutToken(value, tokens.length - 1));
    setText(last.raw);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const chosen = suggestions[at];
    const isListed = isOpen && suggestions.length > 0;
    if (event.key === "ArrowDown" && suggestions.length > 0) {
      setOpen(true);
      setAt((at + 1) % suggestions.length);
    } else if (event.key === "ArrowUp" && isListed) setAt((at - 1 + suggestions.length) % suggestions.length);
    else if (event.key === "Enter") {
      if (chosen && isListed) take(chosen);
      else {
        commit(text);
        // What was asked for is below the list: it must not stand before it.
        setOpen(false);
      }
    } else if (event.key === "Tab" && isListed && text && !event.shiftKey) take(chosen ?? suggestions[0]!);
    else if (event.key === "Backspace" && text === "") editLast();
    else if (event.key === "Escape") {
      if (isListed) setOpen(false);
      else input.current?.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onInput = (typed: string) => {
    setOpen(true);
    // A space outside quotes ends the token.
    const last = tokenise(typed).at(-1);
    if (typed.endsWith(" ") && last?.closed && typed.trim()) commit(typed);
    else setText(typed);
  };
  return (
    <div class="fbox">
      <div class="box" onPointerDown={(event) => event.target === event.currentTarget && requestAnimationFrame(() => input.current?.focus())}>
        <Icon name="search" />
        {tokens.map((token, index) => (
          <FilterToken key={`${index} ${token.raw}`} token={token} isWrong={mistakeOf(token, qualifiers) !== null || isAt(token)} onRemove={() => onChange(withoutToken(value, index))} />
        ))}
        <input
          ref={input}
          value={text}
          role="combobox"
          aria-label={label}
          aria-expanded={isOpen && suggestions.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && at >= 0 ? `${listId}-${at}` : undefined}
          aria-invalid={mistake ? true : undefined}
          placeholder={tokens.length === 0 ? placeholder : ""}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          enterkeyhint="search"
          onInput={(event) => onInput(event.currentTarget.value)}
          onFocus={() => setOpen(true)}
          onBlur={() => {
            setOpen(false);
            commit(text);
          }}
          onKeyDown={onKeyDown}
        />
        {isOpen && suggestions.length > 0 && (
          <ul class="sug" role="listbox" id={listId} aria-label="Suggestions" onPointerDown={(event) => event.preventDefault()}>
            {suggestions.map((suggestion, index) => (
              <li key={suggestion.text} id={`${listId}-${index}`} role="option" aria-selected={index === at} onClick={() => take(suggestion)} onPointerMove={() => setAt(index)}>
                <span class="mono">
                  <Text>{suggestion.text}</Text>
                </span>
                <span class="mid">{suggestion.hint}</span>
                <span>{suggestion.count === undefined ? "" : formatCount(suggestion.count)}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      {mistake && (
        <p class="filter-wrong" role="alert">
          <Icon name="failures" />
          <Text>{mistake}</Text>
        </p>
      )}
    </div>
  );
}

function useSuggestions(text: string, isOpen: boolean, qualifiers: readonly Qualifier[], values: ValueSource | undefined): readonly Suggestion[] {
  const [found, setFound] = useState<readonly Suggestion[]>([]);
  useEffect(() => {
    if (!isOpen) return;
    const fixed = suggestQualifiers(text, qualifiers);
    if (fixed) return setFound(fixed);
    const control = new AbortController();
    const timer = setTimeout(() => {
      suggestValues(text, qualifiers, values, control.signal).then((list) => !control.signal.aborted && setFound(list), () => setFound([]));
    }, DEBOUNCE);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, isOpen, qualifiers]);
  return found;
}
