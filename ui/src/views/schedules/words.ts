import type { Dst, Misfire, OnExhausted, Overlap } from "../../api/types/schedules";
import { isFixedLine } from "./clocks";

interface Rules {
  overlap: Readonly<Record<Overlap, string>>;
  misfire: Readonly<Record<Misfire, string>>;
  on_exhausted: Readonly<Record<OnExhausted, string>>;
  dst: Readonly<Record<Dst, string>>;
}

/** What each rule of a schedule does, in words. */
export const RULES: Rules = {
  overlap: {
    skip: "skip: leaves a tick out while the run before goes on",
    queue: "queue: runs a tick once the run before has ended",
    allow: "allow: runs tick beside tick",
  },
  misfire: {
    latest: "latest: one run for all ticks that were missed",
    skip: "skip: goes on with the next tick",
    all: "all: makes up for each tick that was missed",
  },
  on_exhausted: {
    continue: "continue: fires the next tick all the same",
    stop: "stop: stops itself until somebody resumes it",
  },
  dst: {
    once: "once: a time that comes twice runs once, one that is left out runs right after",
    instant: "instant: runs whenever clocks show the time, also twice or not at all",
  },
};

/** What setting the clocks does to a line. One that follows real time goes on through it, whatever `dst` says. */
export function clocksText(cron: string, dst: Dst): string {
  return isFixedLine(cron) ? RULES.dst[dst] : "it follows real time, so it also runs in both passes of an hour that comes twice";
}
