import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatCount } from "../format/numbers";
import { useKeys } from "../keys/registry";
import { navigate } from "../router/location";
import { chosenRows } from "../state/interaction";
import { plainText } from "../text/split";
import { InTable } from "./TimeAgo";
import { TableHead } from "./TableHead";
import type { Column, TableProps } from "./tableTypes";
import { useWindow } from "./tableWindow";

export type { Column, Sort, TableProps } from "./tableTypes";

/** A list as a real table. `j k` move, Enter opens, `x` chooses, Shift-x a range, `*` the page. */
export function Table<Row>(props: TableProps<Row>) {
  const { rows, columns, rowKey, selection, detail, label } = props;
  const [currentKey, setCurrentKey] = useState<string | null>(null);
  const current = currentKey === null ? -1 : rows.findIndex((row) => rowKey(row) === currentKey);
  const { body, parts, rowHeight } = useWindow(rows.length, current);
  const wantsFocus = useRef(false);
  // Roles are written out: on a phone the rows are no table for the layout, and would lose them.
  const cellRole = selection ? "gridcell" : "cell";
  const columnCount = columns.length + (selection ? 1 : 0);

  // Keys may come faster than draws, so the place is kept beside the state.
  const place = useRef(current);
  place.current = current;
  const moveTo = (at: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, at));
    const row = rows[next];
    if (!row) return;
    place.current = next;
    wantsFocus.current = true;
    setCurrentKey(rowKey(row));
  };
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    const row = body.current?.querySelector<HTMLElement>('tr[tabindex="0"]');
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  });
  useTableKeys(props, place, moveTo);
  useChosenCount(selection?.value.size ?? 0);

  const drawRow = (row: Row, at: number) => {
    const key = rowKey(row);
    const below = detail?.(row);
    const isChosen = selection?.value.has(key) ?? false;
    const classes = [isChosen && "sel", at === current && "cur", props.rowClass?.(row)].filter(Boolean).join(" ");
    return [
      <tr
        key={key}
        data-row
        role="row"
        class={classes || undefined}
        aria-rowindex={at + 2}
        aria-selected={selection ? isChosen : undefined}
        tabIndex={at === current || (current < 0 && at === 0) ? 0 : -1}
        onFocus={(event) => event.target === event.currentTarget && setCurrentKey(key)}
        onClick={(event) => isPlainClick(event) && open(props, row)}
      >
        {selection && (
          <td class="pick" role={cellRole}>
            <input class="ck" type="checkbox" tabIndex={-1} aria-label="Choose this row" checked={isChosen} onChange={() => toggle(selection, key)} />
          </td>
        )}
        {columns.map((column) => (
          <td key={column.id} role={cellRole} class={cellClass(column)} title={titleOf(column, row)}>
            {column.cell(row)}
          </td>
        ))}
      </tr>,
      below ? (
        <tr key={`${key} detail`} class="detail" role="row">
          <td role={cellRole} colSpan={columnCount}>{below}</td>
        </tr>
      ) : null,
    ];
  };
  const classes = ["table", props.fixed !== false && "fixed", props.tall && "tall", !props.keepOnPhone && "lines"].filter(Boolean).join(" ");
  return (
    <InTable.Provider value={true}>
      <div class={classes}>
        <table aria-rowcount={(props.total ?? rows.length) + 1} aria-multiselectable={selection ? true : undefined} role={selection ? "grid" : "table"}>
          <caption class="sr">
            {label}, {formatCount(rows.length)} {rows.length === 1 ? "row" : "rows"}
          </caption>
          <TableHead {...props} />
          <tbody ref={body} role="rowgroup">
            {/* One flat list: a row keeps its element, and so its focus, when the window moves over it. */}
            {parts.flatMap((part) =>
              "gap" in part
                ? [
                    <tr class="gap" key={part.key} aria-hidden="true">
                      <td colSpan={columnCount} style={{ height: `${part.gap * rowHeight}px` }} />
                    </tr>,
                  ]
                : rows.slice(part.from, part.to).flatMap((row, at) => drawRow(row, part.from + at)),
            )}
          </tbody>
        </table>
        {props.foot && <div class="more-rows">{props.foot}</div>}
      </div>
    </InTable.Provider>
  );
}

/** What a cell is cut from: whoever wrote it, nothing in it turns around. */
function titleOf<Row>(column: Column<Row>, row: Row): string | undefined {
  const title = column.title?.(row);
  return title === undefined ? undefined : plainText(title);
}

function cellClass<Row>(column: Column<Row>): string | undefined {
  const names = [column.num && "num", column.cut && "cut", column.phone && `p${column.phone}`, column.class].filter(Boolean);
  return names.join(" ") || undefined;
}

/** A click on the row itself, not on a link or a box in it, and not the end of choosing text. */
function isPlainClick(event: MouseEvent): boolean {
  const target = event.target as Element;
  if (target.closest("a, button, input, select, summary, label")) return false;
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return false;
  return document.getSelection()?.isCollapsed ?? true;
}

function open<Row>(props: TableProps<Row>, row: Row): void {
  if (props.onOpen) props.onOpen(row);
  else if (props.rowTo) navigate(props.rowTo(row));
}

type Selection = NonNullable<TableProps<unknown>["selection"]>;

function toggle(selection: Selection, key: string): void {
  const next = new Set(selection.peek());
  if (!next.delete(key)) next.add(key);
  selection.value = next;
}

function useChosenCount(count: number): void {
  useEffect(() => {
    chosenRows.value = count;
    return () => {
      chosenRows.value = 0;
    };
  }, [count]);
}

function useTableKeys<Row>(props: TableProps<Row>, place: { current: number }, moveTo: (at: number) => void): void {
  const { rows, rowKey, selection } = props;
  const anchor = useRef(-1);
  const isOn = () => !props.withoutKeys && rows.length > 0;
  const rowHere = () => rows[place.current];
  const choose = () => {
    const row = rowHere();
    if (!selection || !row) return;
    anchor.current = place.current;
    toggle(selection, rowKey(row));
  };
  const chooseRange = () => {
    const to = place.current;
    if (!selection || to < 0) return;
    const from = anchor.current < 0 ? to : anchor.current;
    const range = rows.slice(Math.min(from, to), Math.max(from, to) + 1);
    selection.value = new Set([...selection.peek(), ...range.map(rowKey)]);
  };
  const chooseAll = () => {
    if (!selection) return;
    const all = rows.map(rowKey);
    selection.value = all.every((key) => selection.peek().has(key)) ? new Set() : new Set(all);
  };
  const openHere = () => {
    const row = rowHere();
    if (row) open(props, row);
  };
  const canOpen = Boolean(props.onOpen ?? props.rowTo);
  const canChoose = () => isOn() && selection !== undefined;
  const group = "List";
  useKeys([
    { keys: "j", text: "Next row", group, when: isOn, run: () => moveTo(place.current + 1) },
    { keys: "k", text: "Row before", group, when: isOn, run: () => moveTo(place.current - 1) },
    { keys: "ArrowDown", text: "Next row", group: "", when: () => isOn() && isOnRow(), run: () => moveTo(place.current + 1) },
    { keys: "ArrowUp", text: "Row before", group: "", when: () => isOn() && isOnRow(), run: () => moveTo(place.current - 1) },
    { keys: "Enter", text: "Open the row", group, when: () => isOn() && canOpen && rowHere() !== undefined, run: () => openHere() },
    { keys: "x", text: "Choose the row", group, when: canChoose, run: choose },
    { keys: "Shift+x", text: "Choose all rows up to here", group, when: canChoose, run: chooseRange },
    { keys: "*", text: "Choose all rows of the page", group, when: canChoose, run: chooseAll },
  ]);
}

function isOnRow(): boolean {
  return document.activeElement?.matches("tr[data-row]") ?? false;
}
