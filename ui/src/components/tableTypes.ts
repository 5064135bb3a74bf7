import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

export interface Sort {
  by: string;
  direction: "ascending" | "descending";
}

export interface Column<Row> {
  id: string;
  label: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers stand right and are never cut. */
  num?: boolean;
  /** "98px"; the column without a width takes what is left. */
  width?: string;
  /** Text that may be long: cut with an ellipsis, the whole in `title`. */
  cut?: boolean;
  title?: (row: Row) => string | undefined;
  /** Only what an index answers can be sorted by; this is the first direction. */
  sort?: Sort["direction"];
  /** Its place in the two lines of a phone: 1 and 2 above, 3 and 4 below. Without a place it is left out there. */
  phone?: 1 | 2 | 3 | 4;
  /** Adds to the classes of the cell: "mid", "dim", "mono". */
  class?: string;
}

export interface TableProps<Row> {
  /** What the rows are, for readers: "Tasks". */
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  /** The address of a row's detail: Enter goes there. */
  rowTo?: (row: Row) => string;
  /** Instead of `rowTo`, for a row that opens in place. */
  onOpen?: (row: Row) => void;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  /** The keys of the chosen rows. Giving it adds the boxes, `x` and `*`. */
  selection?: Signal<ReadonlySet<string>>;
  /** What stands under a row that is open. */
  detail?: (row: Row) => ComponentChildren | null;
  rowClass?: (row: Row) => string | undefined;
  /** How many rows there are in all, if more than are here. */
  total?: number;
  /** Two lines a row. */
  tall?: boolean;
  /** Keeps the table as it is on a phone, to be scrolled sideways. */
  keepOnPhone?: boolean;
  /** Leaves `j k Enter x *` to another table of the view. */
  withoutKeys?: boolean;
  /** Below the rows: "Load more", a note. */
  foot?: ComponentChildren;
  /** The widths of the columns hold (default); false lets the content decide. */
  fixed?: boolean;
}
