import type { ComponentChildren } from "preact";
import type { Status } from "../api/types";
import { formatCount } from "../format/numbers";
import { StatusShape } from "../icons/StatusShape";
import { Link } from "../router/Link";
import type { QueryValues } from "../router/location";

export interface Tab {
  label: ComponentChildren;
  /** Each tab is an address. */
  to: string;
  query?: QueryValues;
  current: boolean;
  count?: number | null;
  status?: Status;
}

/** Places beside each other. They are links, since every view has its address. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link to={tab.to} query={tab.query} aria-current={tab.current ? "page" : undefined}>
          {tab.status && <StatusShape status={tab.status} />}
          {tab.label}
          {tab.count !== undefined && tab.count !== null && <span class="n">{formatCount(tab.count)}</span>}
        </Link>
      ))}
    </nav>
  );
}
