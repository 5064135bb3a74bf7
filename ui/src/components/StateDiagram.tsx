import type { Status } from "../api/types";
import { type DiagramNode, EDGES, NODES, pathInWords, reached, type Step } from "./stateDiagramLayout";

interface StateDiagramProps {
  /** Every status the task has been in, in order. The last is where it is now. */
  path: readonly Status[];
}

/** The transition table as a fixed drawing: the path taken in ink with counts, now filled, the rest faint. */
export function StateDiagram({ path }: StateDiagramProps) {
  const now = path.at(-1) ?? null;
  const steps = reached(path);
  const isHit = (node: DiagramNode) => node.id === "submitted" || path.includes(node.id as Status);
  const visible = NODES.filter((node) => node.always || isHit(node));
  const shown = new Set(visible.map((node) => node.id));
  const edges = EDGES.filter((edge) => shown.has(edge.from) && shown.has(edge.to) && (edge.always || steps.has(`${edge.from} ${edge.to}`)));
  const taken = (edge: { from: string; to: string }): Step | undefined => steps.get(`${edge.from} ${edge.to}`);
  // What was taken is drawn last, over the faint lines.
  const ordered = [...edges].sort((one, other) => Number(taken(one) !== undefined) - Number(taken(other) !== undefined));
  return (
    <div class="sd" tabIndex={0} role="group" aria-label="States">
      <svg viewBox="0 0 760 116" role="img" aria-label={pathInWords(path)}>
        {ordered.map((edge) => (
          <path key={`${edge.from} ${edge.to}`} class={taken(edge) ? "hit" : undefined} d={taken(edge) ? `${edge.line}${edge.head}` : edge.line} />
        ))}
        {visible.map((node) => (
          <g key={node.id} class={node.id === now ? "now" : isHit(node) ? "hit" : undefined}>
            <rect x={node.x} y={node.y} width={node.width} height="26" rx="6" />
            <text x={node.x + node.width / 2} y={node.y + 17} text-anchor="middle">
              {node.id}
            </text>
          </g>
        ))}
        {edges.map((edge) => {
          const step = taken(edge);
          if (!step || step.times < 2) return null;
          return (
            <text class="cnt" key={`${edge.from} ${edge.to} count`} x={edge.labelAt[0]} y={edge.labelAt[1]} text-anchor="middle">
              {step.times} times
            </text>
          );
        })}
      </svg>
    </div>
  );
}
