import type { AuditRow } from "../../api/types/events";
import { quote } from "../../filter/tokens";
import { Link } from "../../router/Link";
import { pathOf, type QueryValues } from "../../router/location";
import { Text } from "../../text/Text";

interface Place {
  to: string;
  query?: QueryValues;
}

/** By the thing that the words of an entry end with: "paused a queue". */
const PLACES: readonly (readonly [thing: string, place: (target: string) => Place])[] = [
  ["task", (target) => ({ to: pathOf("tasks", target) })],
  ["dead letter", (target) => ({ to: pathOf("tasks", target) })],
  ["schedule", (target) => ({ to: pathOf("schedules", target) })],
  ["queue", (target) => ({ to: pathOf("queues", target) })],
  ["worker", (target) => ({ to: pathOf("workers", target) })],
  ["type", (target) => ({ to: "tasks", query: { q: `type:${quote(target)}` } })],
  ["breaker", () => ({ to: "limits" })],
  ["limit", () => ({ to: "limits" })],
  ["switched off", () => ({ to: "limits" })],
  ["switched on", () => ({ to: "limits" })],
  ["token", () => ({ to: "settings/tokens" })],
];

function placeOf({ what, target }: AuditRow): Place | null {
  // The target of a submit is a type, which has no place of its own here.
  if (!target || what.startsWith("submitted")) return null;
  return PLACES.find(([thing]) => what.endsWith(thing))?.[1](target) ?? null;
}

/** What it was done to, as a link where one can go there. */
export function Target({ row }: { row: AuditRow }) {
  const place = placeOf(row);
  if (!place) return <Text>{row.target}</Text>;
  return (
    <Link to={place.to} query={place.query}>
      <Text>{row.target}</Text>
    </Link>
  );
}
