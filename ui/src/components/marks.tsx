import type { ComponentChildren } from "preact";
import type { Status } from "../api/types";
import { Icon } from "../icons/Icon";
import type { IconName } from "../icons/paths";
import { StatusShape, TONE_OF, type Tone } from "../icons/StatusShape";
import { Text } from "../text/Text";

/** The status of a task: shape and word. `ground` gives it the tint that headers use; in tables it stays calm. */
export function StatusPill({ status, ground }: { status: Status; ground?: boolean }) {
  return (
    <span class={ground ? `pill ${TONE_OF[status] ?? "rest"}` : "st"}>
      <StatusShape status={status} />
      {status}
    </span>
  );
}

/** A second pill beside the status: "held by a breaker". */
export function Pill({ tone = "rest", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`pill word ${tone}`}>{children}</span>;
}

/** A small mark at a name: "new", "muted by sam", "leader". */
export function Note({ tone, children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={tone ? `note ${tone}` : "note"}>{children}</span>;
}

/** A word in a frame: a tag, a label of a worker. Its text comes from outside. */
export function Tag({ children }: { children: string }) {
  return (
    <span class="tag">
      <Text>{children}</Text>
    </span>
  );
}

/** What holds tasks back, in a row: icon and words in amber. */
export function Held({ icon, children }: { icon: IconName; children: ComponentChildren }) {
  return (
    <span class="held">
      <Icon name={icon} />
      {children}
    </span>
  );
}

/** A share as a bar; the number always stands beside it. */
export function Bar({ share, tone = "play", label, wide }: { share: number; tone?: Tone | "ink"; label: string; wide?: boolean }) {
  const percent = Math.max(0, Math.min(1, share)) * 100;
  return (
    <span class="bar" role="img" aria-label={label} style={wide ? { width: "100%" } : undefined}>
      <i class={`f-${tone}`} style={{ width: `${percent}%` }} />
    </span>
  );
}

export interface LegendEntry {
  label: string;
  tone?: Tone | "quiet" | "ink";
  line?: "solid" | "thin" | "dotted" | "faint";
}

/** What colours and lines mean. */
export function Legend({ entries }: { entries: readonly LegendEntry[] }) {
  return (
    <>
      {entries.map((entry) => (
        <span class="key" key={entry.label}>
          <i class={entry.line ? `k-line ${entry.line}` : `f-${entry.tone ?? "quiet"}`} />
          {entry.label}
        </span>
      ))}
    </>
  );
}
