import type { Status } from "../api/types";

export interface DiagramNode {
  id: Status | "submitted";
  x: number;
  y: number;
  width: number;
  /** False for one that is drawn only if it was reached: most stores never use it. */
  always: boolean;
}

export interface DiagramEdge {
  from: Status | "submitted";
  to: Status;
  line: string;
  /** The head of the arrow, drawn only where the way was taken. */
  head: string;
  labelAt: readonly [number, number];
  always: boolean;
}

export interface Step {
  times: number;
}

const TOP = 8;
const MIDDLE = 46;
const LOW = 84;

export const NODES: readonly DiagramNode[] = [
  { id: "submitted", x: 12, y: MIDDLE, width: 80, always: true },
  { id: "pending", x: 122, y: MIDDLE, width: 72, always: true },
  { id: "blocked", x: 122, y: LOW, width: 72, always: true },
  { id: "ready", x: 244, y: TOP, width: 72, always: true },
  { id: "assigned", x: 346, y: MIDDLE, width: 72, always: false },
  { id: "running", x: 448, y: TOP, width: 76, always: true },
  { id: "retrying", x: 448, y: LOW, width: 76, always: true },
  { id: "success", x: 656, y: TOP, width: 90, always: true },
  { id: "dead", x: 656, y: MIDDLE, width: 90, always: true },
  { id: "failed", x: 556, y: MIDDLE, width: 72, always: false },
  { id: "cancelled", x: 656, y: LOW, width: 90, always: true },
];

function right(x: number, y: number): string {
  return `M${x - 6} ${y - 4}l6 4-6 4`;
}

function edge(from: DiagramEdge["from"], to: Status, line: string, head: string, labelAt: readonly [number, number], always = false): DiagramEdge {
  return { from, to, line, head, labelAt, always };
}

/** The ways of the transition table, each as one line. Rare ones show only where they were taken. */
export const EDGES: readonly DiagramEdge[] = [
  edge("submitted", "ready", "M52 46C52 26 66 21 84 21H244", right(244, 21), [150, 16], true),
  edge("submitted", "pending", "M92 59H122", right(122, 59), [107, 54], true),
  edge("submitted", "blocked", "M92 59C108 59 106 97 122 97", right(122, 97), [107, 90], true),
  edge("pending", "ready", "M194 59C222 59 222 30 244 27", right(244, 27), [222, 52], true),
  edge("blocked", "ready", "M194 97C232 97 268 76 272 34", "M267 40l5-6 5 6", [240, 92], true),
  edge("blocked", "pending", "M158 84V72", "M154 78l4-6 4 6", [176, 81]),
  edge("ready", "running", "M316 21H448", right(448, 21), [382, 16], true),
  edge("ready", "assigned", "M316 25C336 27 334 54 346 57", right(346, 58), [330, 46]),
  edge("assigned", "running", "M418 57C436 54 430 30 448 27", right(448, 26), [440, 52]),
  edge("assigned", "ready", "M346 62C310 64 292 54 288 34", "M283 40l5-6 5 6", [312, 70]),
  edge("ready", "pending", "M244 17C214 17 196 30 186 46", "M186 38l0 8 7-3", [206, 36]),
  edge("running", "retrying", "M524 27C550 36 550 92 524 97", "M530 91l-6 6 8 2", [573, 66], true),
  edge("retrying", "ready", "M448 97H320C292 97 280 70 280 34", "M275 40l5-6 5 6", [384, 92], true),
  edge("running", "pending", "M466 34C440 74 260 80 194 64", "M201 61l-7 3 5 6", [330, 82]),
  edge("running", "ready", "M456 8C420-4 344-4 308 8", "M315 3l-7 5 8 2", [382, 6]),
  edge("running", "success", "M524 21H656", right(656, 21), [600, 16], true),
  edge("running", "dead", "M524 21C596 21 600 59 656 59", right(656, 59), [600, 48], true),
  edge("running", "failed", "M524 24C544 26 540 57 556 59", right(556, 59), [548, 46]),
  edge("running", "cancelled", "M524 21C596 21 592 97 656 97", right(656, 97), [600, 74], true),
  edge("ready", "cancelled", "M280 34C286 124 520 116 656 101", right(656, 100), [420, 114]),
  edge("pending", "cancelled", "M158 72C170 122 480 122 656 103", right(656, 102), [420, 114]),
  edge("blocked", "cancelled", "M158 110C190 122 480 122 656 103", right(656, 102), [420, 114]),
  edge("retrying", "cancelled", "M524 101H656", right(656, 101), [600, 112]),
  edge("assigned", "cancelled", "M382 72C400 122 540 116 656 103", right(656, 102), [500, 114]),
];

/** Each way that was taken, and how often. */
export function reached(path: readonly Status[]): Map<string, Step> {
  const steps = new Map<string, Step>();
  let from: string = "submitted";
  for (const to of path) {
    const key = `${from} ${to}`;
    steps.set(key, { times: (steps.get(key)?.times ?? 0) + 1 });
    from = to;
  }
  return steps;
}

/** The path as text, for readers who do not see the drawing. */
export function pathInWords(path: readonly Status[]): string {
  if (path.length === 0) return "No state was reached yet.";
  return `States reached: submitted, ${path.join(", ")} now.`;
}
