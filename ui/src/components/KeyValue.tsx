import type { ComponentChildren } from "preact";

/** A label and its value; a value of null or undefined leaves the row out. */
export type Fact = readonly [label: string, value: ComponentChildren];

/** Facts about one thing: labels left, values right, links where they can filter. */
export function KeyValue({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="kv">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([label, value]) => (
          <>
            <dt key={`${label}-t`}>{label}</dt>
            <dd key={`${label}-d`}>{value}</dd>
          </>
        ))}
    </dl>
  );
}
