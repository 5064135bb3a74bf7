import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { Resource } from "../api/resource";
import { Loading, ReadError } from "./Loading";

interface CardProps {
  title?: ComponentChildren;
  /** Beside the title, small: a sum, a link, buttons. */
  more?: ComponentChildren;
  children?: ComponentChildren;
  class?: string;
  /** Gives the content the padding of text; tables and lists bring their own. */
  padded?: boolean;
  /** While it has no data yet the card shows that it waits; if it fails the card alone says so. */
  of?: Resource<unknown>;
}

/** A part of a view, framed by a hairline. */
export function Card({ title, more, children, class: extra, padded, of }: CardProps) {
  const id = useId();
  const isWaiting = of !== undefined && of.data.value === null && of.error.value === null;
  const hasFailed = of !== undefined && of.error.value !== null;
  return (
    <section class={extra ? `card ${extra}` : "card"} aria-labelledby={title ? id : undefined}>
      {(title || more) && (
        <div class="h">
          {title && <h2 id={id}>{title}</h2>}
          {more && (
            <>
              <span class="sp" />
              <span class="more row">{more}</span>
            </>
          )}
        </div>
      )}
      {of && hasFailed && <ReadError of={of} />}
      {of && isWaiting && <Loading of={of} />}
      {(of === undefined || of.data.value !== null) && (padded ? <div class="c">{children}</div> : children)}
    </section>
  );
}
