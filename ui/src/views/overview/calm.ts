import { useRef } from "preact/hooks";
import type { Resource } from "../../api/resource";
import { isPaused } from "../../live/stream";
import { readerIsBusy } from "../../state/interaction";

/** The data of a resource, held still while the reader is at something: nothing may move under a hand. */
export function useCalm<Data>(resource: Resource<Data>): Data | null {
  const shown = useRef<Data | null>(null);
  const data = resource.data.value;
  if (shown.current === null || !readerIsBusy.value) shown.current = data;
  return shown.current;
}

/** How often a live part is read again, in milliseconds; never while the reader has stopped the updates. */
export function unlessPaused(every: number): number {
  return isPaused.value ? 0 : every;
}

/** Holds rows that come and go while the pointer or the focus is among them: none may leave from under the cursor. */
export function useStillUnder<Data>(data: Data) {
  const isOver = useRef(false);
  const held = useRef(data);
  if (!isOver.current) held.current = data;
  const enter = () => {
    isOver.current = true;
  };
  const leave = () => {
    isOver.current = false;
  };
  return { shown: held.current, handlers: { onPointerEnter: enter, onPointerLeave: leave, onFocusIn: enter, onFocusOut: leave } };
}
