import type { Column, Sort, TableProps } from "./tableTypes";

/** The head of a table: names, the mark of the order, and the box that chooses the page. */
export function TableHead<Row>({ columns, sort, onSort, selection, rows, rowKey }: TableProps<Row>) {
  const chosen = selection?.value;
  const isAll = chosen !== undefined && rows.length > 0 && rows.every((row) => chosen.has(rowKey(row)));
  const isSome = chosen !== undefined && !isAll && rows.some((row) => chosen.has(rowKey(row)));
  const chooseAll = () => {
    if (selection) selection.value = isAll ? new Set() : new Set(rows.map(rowKey));
  };
  return (
    <thead role="rowgroup">
      <tr role="row">
        {selection && (
          <th class="pick" scope="col" role="columnheader">
            <input class="ck" type="checkbox" aria-label="Choose the page" checked={isAll} indeterminate={isSome} onChange={chooseAll} />
          </th>
        )}
        {columns.map((column) => (
          <Head key={column.id} column={column} sort={sort} onSort={onSort} />
        ))}
      </tr>
    </thead>
  );
}

interface HeadProps<Row> {
  column: Column<Row>;
  sort: Sort | undefined;
  onSort: ((sort: Sort) => void) | undefined;
}

function Head<Row>({ column, sort, onSort }: HeadProps<Row>) {
  const isSorted = sort?.by === column.id;
  const mark = isSorted ? (sort.direction === "ascending" ? " ↑" : " ↓") : "";
  const flip = () => {
    if (!column.sort) return;
    const other = sort?.direction === "ascending" ? "descending" : "ascending";
    onSort?.({ by: column.id, direction: isSorted ? other : column.sort });
  };
  return (
    <th class={column.num ? "num" : undefined} scope="col" role="columnheader" style={column.width ? { width: column.width } : undefined} aria-sort={isSorted ? sort.direction : undefined}>
      {column.sort && onSort ? (
        <button type="button" onClick={flip}>
          {column.label}
          <span aria-hidden="true">{mark}</span>
        </button>
      ) : (
        // A column of buttons needs no word for those who see it.
        column.label || <span class="sr">Actions</span>
      )}
    </th>
  );
}
