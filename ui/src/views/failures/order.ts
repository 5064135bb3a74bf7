import { useRef, useState } from "preact/hooks";

interface Settled<Item> {
  items: readonly Item[];
  /** How many would come in if the list were drawn anew. */
  fresh: number;
  show: () => void;
}

/** Keeps the order in which a list was first shown: rows change in place, and what would enter is only counted. */
export function useSettledOrder<Item>(read: readonly Item[] | null, keyOf: (item: Item) => string): Settled<Item> {
  const order = useRef<readonly string[]>([]);
  const [, redraw] = useState(0);
  const found = new Map((read ?? []).map((item) => [keyOf(item), item]));
  if (order.current.length === 0) order.current = [...found.keys()];
  const items = order.current.flatMap((key) => found.get(key) ?? []);
  const show = () => {
    order.current = [...found.keys()];
    redraw((count) => count + 1);
  };
  return { items, fresh: found.size - items.length, show };
}
