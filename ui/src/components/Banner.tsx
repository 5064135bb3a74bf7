import type { ComponentChildren } from "preact";
import type { Tone } from "../icons/StatusShape";

interface BannerProps {
  tone?: Tone;
  children: ComponentChildren;
  action?: ComponentChildren;
}

/** One sentence over a view or a part of it, with the one thing to do. */
export function Banner({ tone = "rest", children, action }: BannerProps) {
  return (
    <div class={`banner ${tone}`} role="status">
      <span>{children}</span>
      {action}
    </div>
  );
}
