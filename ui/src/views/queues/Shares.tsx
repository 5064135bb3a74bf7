import type { ComponentChildren } from "preact";
import { Bar } from "../../components/marks";
import { formatCount, formatPercent } from "../../format/numbers";

export interface Share {
  key: string;
  label: ComponentChildren;
  count: number;
}

/** Parts of a whole as bars, each with its number. */
export function Shares({ title, shares, of }: { title?: string; shares: readonly Share[]; of: number }) {
  return (
    <>
      {title && <h3>{title}</h3>}
      <ol>
        {shares.map((share) => (
          <li key={share.key}>
            <span class="cut">{share.label}</span>
            <Bar share={of > 0 ? share.count / of : 0} tone="ink" label={of > 0 ? formatPercent(share.count / of) : "nothing"} />
            <span class="num">{formatCount(share.count)}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

/** How often each value occurs, the most first. */
export function tally<Row>(rows: readonly Row[], read: (row: Row) => string): [value: string, count: number][] {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(read(row), (counts.get(read(row)) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one);
}
