import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Shown {
  text: string;
  x: number;
  /** The tip stands above this line, or below `under` if there is no room. */
  above: number;
  under: number;
}

const shown = signal<Shown | null>(null);

/** Shows a tip at an element, or at a point of it. There is one tip a page. */
export function showTip(element: Element, text: string, x?: number): void {
  const box = element.getBoundingClientRect();
  shown.value = { text, x: x ?? box.left + box.width / 2, above: box.top, under: box.bottom };
}

export function hideTip(): void {
  shown.value = null;
}

/** Handlers that show a tip on hover and on focus. */
export function tipOn(text: string | (() => string)) {
  const show = (event: { currentTarget: Element }) => showTip(event.currentTarget, typeof text === "string" ? text : text());
  return { onPointerEnter: show, onPointerLeave: hideTip, onFocus: show, onBlur: hideTip };
}

/** The place where tips are drawn; the frame holds it. */
export function TipLayer() {
  const element = useRef<HTMLDivElement>(null);
  const tip = shown.value;
  useLayoutEffect(() => {
    if (!element.current || !tip) return;
    // In the top layer, or a dialog would hide it.
    element.current.showPopover();
    const { offsetWidth: width, offsetHeight: height } = element.current;
    const left = Math.max(8, Math.min(tip.x - width / 2, innerWidth - width - 8));
    const top = tip.above - height - 6 < 4 ? tip.under + 6 : tip.above - height - 6;
    element.current.style.left = `${left}px`;
    element.current.style.top = `${top}px`;
  }, [tip]);
  if (!tip) return null;
  return (
    <div class="tip" role="tooltip" popover="manual" ref={element}>
      {tip.text}
    </div>
  );
}

addEventListener("scroll", hideTip, { passive: true });
addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
