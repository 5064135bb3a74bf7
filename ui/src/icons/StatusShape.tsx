import type { JSX } from "preact";
import type { Status } from "../api/types";

/** Whose turn it is; the five colours say nothing else. */
export type Tone = "rest" | "play" | "heal" | "bad" | "good";

export const TONE_OF: Readonly<Record<Status, Tone>> = {
  pending: "rest",
  blocked: "rest",
  ready: "play",
  assigned: "play",
  running: "play",
  retrying: "heal",
  success: "good",
  failed: "bad",
  dead: "bad",
  cancelled: "rest",
};

const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" } as const;

const SHAPES: Readonly<Record<Status, () => JSX.Element>> = {
  pending: () => (
    <g {...line}>
      <circle cx="7" cy="7" r="5.5" />
      <path d="M7 4v3.2l2 1.3" />
    </g>
  ),
  blocked: () => (
    <>
      <circle cx="7" cy="7" r="5.5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-dasharray="2.2 2.12" />
      <circle cx="7" cy="7" r="1.6" fill="currentColor" />
    </>
  ),
  ready: () => <circle cx="7" cy="7" r="5.25" fill="none" stroke="currentColor" stroke-width="1.75" />,
  assigned: () => (
    <>
      <circle cx="7" cy="7" r="5.25" fill="none" stroke="currentColor" stroke-width="1.75" />
      <path d="M7 1.75a5.25 5.25 0 0 0 0 10.5z" fill="currentColor" />
    </>
  ),
  running: () => (
    <path fill="currentColor" fill-rule="evenodd" d="M7 .9a6.1 6.1 0 1 0 0 12.2A6.1 6.1 0 0 0 7 .9zM5.5 4.2v5.6L10 7z" />
  ),
  retrying: () => <path {...line} d="M12 7a5 5 0 1 1-1.6-3.7M12.2 1v3H9.2" />,
  success: () => <path {...line} stroke-width="1.8" d="M2.2 7.4l3.2 3.3 6.4-7.2" />,
  failed: () => (
    <g {...line}>
      <circle cx="7" cy="7" r="5.5" />
      <path d="M5 5l4 4M9 5L5 9" />
    </g>
  ),
  dead: () => (
    <path
      fill="currentColor"
      fill-rule="evenodd"
      d="M4.3.8h5.4l3.5 3.5v5.4l-3.5 3.5H4.3L.8 9.7V4.3zM4.9 3.9l-1 1L6 7 3.9 9.1l1 1L7 8l2.1 2.1 1-1L8 7l2.1-2.1-1-1L7 6z"
    />
  ),
  cancelled: () => (
    <g {...line}>
      <circle cx="7" cy="7" r="5.5" />
      <path d="M3.3 10.7l7.4-7.4" />
    </g>
  ),
};

/** The shape of a status, in the colour of whose turn it is. Words stand beside it. */
export function StatusShape({ status, tone }: { status: Status; tone?: Tone }) {
  const Shape = SHAPES[status] ?? SHAPES.pending;
  return (
    <svg class={`s c-${tone ?? TONE_OF[status] ?? "rest"}`} viewBox="0 0 14 14" aria-hidden="true">
      <Shape />
    </svg>
  );
}
