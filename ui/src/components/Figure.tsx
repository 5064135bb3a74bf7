import type { ComponentChildren } from "preact";
import { Link } from "../router/Link";
import type { QueryValues } from "../router/location";

interface FigureProps {
  title: string;
  /** Null while it is not known. */
  value: ComponentChildren | null;
  unit?: string;
  /** A second line that puts the number in its place. */
  sub?: ComponentChildren;
  /** The tasks behind the number. */
  to?: string;
  query?: QueryValues;
  /** A sparkline. */
  children?: ComponentChildren;
}

/** A number with its unit. Several stand in a `Figures`. */
export function Figure({ title, value, unit, sub, to, query, children }: FigureProps) {
  const figure = value === null ? <span class="wait" style={{ maxWidth: "72px" }} /> : <>{value} {unit && <small>{unit}</small>}</>;
  return (
    <div class="fig">
      <h2 class="t">{title}</h2>
      <div class="v">{to !== undefined && value !== null ? <Link to={to} query={query}>{figure}</Link> : figure}</div>
      {sub !== undefined && <div class="sub">{sub}</div>}
      {children}
    </div>
  );
}

export function Figures({ children, label }: { children: ComponentChildren; label: string }) {
  return (
    <section class="card figs" aria-label={label}>
      {children}
    </section>
  );
}
