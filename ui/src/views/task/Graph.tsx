import { useResource } from "../../api/resource";
import type { Dependencies, TaskRow, TaskView } from "../../api/types/tasks";
import { Card } from "../../components/Card";
import { StatusShape } from "../../icons/StatusShape";
import { plural } from "../../format/numbers";
import { Link } from "../../router/Link";
import { href, navigate, pathOf } from "../../router/location";
import { plainText } from "../../text/split";

const MOST = 6;
const WIDTH = 312;
const BOX = { height: 26, gap: 10 };
const SELF = { width: 64, gap: 13 };
/** The widest that a letter is on average, for cutting names to their box. */
const LETTER = 6.3;

/** A name as far as it fits into a box beside the shape. */
function cut(text: string, width: number): string {
  const letters = [...plainText(text)];
  const most = Math.floor((width - 34) / LETTER);
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("");
}

/** The tasks that one depends on, and those that depend on it: one step each way. */
export function Graph({ task }: { task: TaskView }) {
  const found = useResource<Dependencies>(() => `tasks/${encodeURIComponent(task.id)}/dependencies`, { every: 10_000 });
  const data = found.data.value;
  if (data && data.upstream.length + data.dependants.length + data.gone.length === 0 && !data.cut) return null;
  if (!data && !found.error.value) return null;
  return (
    <Card title="Dependencies" of={found}>
      {data && data.upstream.length + data.dependants.length + data.gone.length > 0 && <Drawing data={data} />}
      {data?.cut && <p class="c dim small">Tasks that were cancelled with it are not shown: too many were cancelled since.</p>}
    </Card>
  );
}

function Drawing({ data }: { data: Dependencies }) {
  const before = data.upstream.slice(0, MOST);
  const after = data.dependants.slice(0, MOST);
  const rows = Math.max(before.length, after.length, 1);
  const height = rows * (BOX.height + BOX.gap) - BOX.gap + 2;
  const middle = height / 2;
  const yOf = (at: number, count: number) => middle - (count * (BOX.height + BOX.gap) - BOX.gap) / 2 + at * (BOX.height + BOX.gap);
  const names = (rowsOf: readonly TaskRow[]) => rowsOf.map((row) => plainText(row.type)).join(", ") || "none";
  // With tasks on one side only, their boxes may take the room of both.
  const isBoth = before.length > 0 && after.length > 0;
  const width = isBoth ? (WIDTH - SELF.width) / 2 - SELF.gap - 1 : WIDTH - SELF.width - SELF.gap * 2 - 2;
  const selfX = before.length > 0 ? 1 + width + SELF.gap : 1;
  const right = WIDTH - width - 1;
  return (
    <div class="deps">
      <svg viewBox={`0 0 ${WIDTH} ${height}`} role="group" aria-label={`Before it: ${names(before)}. After it: ${names(after)}.`}>
        {before.map((row, at) => (
          <Edge key={row.id} fromX={1 + width} fromY={yOf(at, before.length) + BOX.height / 2} toX={selfX} toY={middle} />
        ))}
        {after.map((row, at) => (
          <Edge key={row.id} fromX={selfX + SELF.width} fromY={middle} toX={right} toY={yOf(at, after.length) + BOX.height / 2} />
        ))}
        {before.map((row, at) => (
          <Node key={row.id} row={row} width={width} x={1} y={yOf(at, before.length)} />
        ))}
        <g class="self">
          <rect x={selfX} y={middle - BOX.height / 2} width={SELF.width} height={BOX.height} rx="6" />
          <text x={selfX + SELF.width / 2} y={middle + 4} text-anchor="middle">
            this task
          </text>
        </g>
        {after.map((row, at) => (
          <Node key={row.id} row={row} width={width} x={right} y={yOf(at, after.length)} />
        ))}
      </svg>
      <Rest data={data} />
    </div>
  );
}

function Rest({ data }: { data: Dependencies }) {
  const hidden = Math.max(0, data.upstream.length - MOST) + Math.max(0, data.dependants.length - MOST);
  const ids = [...data.upstream, ...data.dependants].slice(0, 20).map((row) => row.id);
  return (
    <>
      {hidden > 0 && (
        <p class="small">
          <Link class="go" to="tasks" query={{ q: `id:${ids.join(",")}` }}>
            and {plural(hidden, "more task")}
          </Link>
        </p>
      )}
      {data.gone.length > 0 && <p class="small dim">{plural(data.gone.length, "task")} that it depended on {data.gone.length === 1 ? "is" : "are"} no longer kept.</p>}
    </>
  );
}

function Edge({ fromX, fromY, toX, toY }: { fromX: number; fromY: number; toX: number; toY: number }) {
  const bend = (toX - fromX) / 2;
  return <path class="e" d={`M${fromX} ${fromY}C${fromX + bend} ${fromY} ${toX - bend} ${toY} ${toX} ${toY}`} />;
}

function Node({ row, x, y, width }: { row: TaskRow; x: number; y: number; width: number }) {
  const to = pathOf("tasks", row.id);
  return (
    <a
      href={href(to)}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        navigate(to);
      }}
    >
      <title>{`${plainText(row.type)}, ${row.status}, ${plainText(row.id)}`}</title>
      <rect x={x} y={y} width={width} height={BOX.height} rx="6" />
      <svg x={x + 8} y={y + 6} width="14" height="14">
        <StatusShape status={row.status} />
      </svg>
      <text x={x + 27} y={y + 17}>
        {cut(row.type, width)}
      </text>
    </a>
  );
}
