import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { formatCount } from "../format/numbers";
import { Button } from "./Button";

interface BulkBarProps {
  selection: Signal<ReadonlySet<string>>;
  /** All that match the filter, and how to choose them; the action then goes by the filter. Null where only a walk would count them. */
  matching?: { count: number | null; isChosen: boolean; choose: () => void };
  /** Buttons, those that the transition table allows for what is chosen. */
  children: ComponentChildren;
}

/** What can be done with the chosen rows. It floats over the end of the list. */
export function BulkBar({ selection, matching, children }: BulkBarProps) {
  const count = selection.value.size;
  if (count === 0) return null;
  const isAll = matching?.isChosen ?? false;
  return (
    <div class="bulk" role="region" aria-label="Chosen rows">
      <b>{isAll ? `All${matching?.count ? ` ${formatCount(matching.count)}` : ""} that match` : `${formatCount(count)} selected`}</b>
      {matching && !isAll && (matching.count === null || matching.count > count) && (
        <button type="button" class="link" onClick={matching.choose}>
          Select all {matching.count === null ? "" : `${formatCount(matching.count)} `}that match
        </button>
      )}
      <span class="vr" />
      {children}
      <Button kind="quiet" icon="close" label="Choose none" onClick={() => (selection.value = new Set())} />
    </div>
  );
}
