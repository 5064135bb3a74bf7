import type { Counts } from "../api/types";
import type { IconName } from "../icons/paths";

export interface NavEntry {
  section: string;
  label: string;
  to: string;
  icon: IconName;
  /** After `g`; empty for none. */
  key: string;
  /** The number beside it, if it says anything. */
  count?: (counts: Counts) => number;
  /** Whose turn a number other than zero is: yours, or somebody holds it. */
  tone?: "alarm" | "warn";
}

/** The entries of the sidebar, in groups. */
export const NAV: readonly (readonly NavEntry[])[] = [
  [{ section: "overview", label: "Overview", to: "", icon: "overview", key: "o" }],
  [
    { section: "tasks", label: "Tasks", to: "tasks", icon: "tasks", key: "t" },
    { section: "failures", label: "Failures", to: "failures", icon: "failures", key: "f", count: (counts) => (counts.tasks.dead ?? 0) + (counts.tasks.failed ?? 0), tone: "alarm" },
    { section: "schedules", label: "Schedules", to: "schedules", icon: "schedules", key: "s", count: (counts) => counts.schedules },
  ],
  [
    { section: "queues", label: "Queues", to: "queues", icon: "queues", key: "q", count: (counts) => counts.queues },
    { section: "workers", label: "Workers", to: "workers", icon: "workers", key: "w", count: (counts) => counts.workers },
    { section: "limits", label: "Limits", to: "limits", icon: "limits", key: "l", count: (counts) => counts.breakers, tone: "warn" },
  ],
  [
    { section: "events", label: "Events", to: "events", icon: "events", key: "e" },
    { section: "alerts", label: "Alerts", to: "alerts", icon: "alerts", key: "a", count: (counts) => counts.firing, tone: "alarm" },
    { section: "reports", label: "Reports", to: "reports", icon: "reports", key: "r" },
  ],
  [{ section: "settings", label: "Settings", to: "settings", icon: "settings", key: "" }],
];

export const NAV_ENTRIES: readonly NavEntry[] = NAV.flat();
