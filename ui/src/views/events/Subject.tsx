import type { EventRow } from "../../api/types/events";
import { quote } from "../../filter/tokens";
import { shortId } from "../../format/ids";
import { Link } from "../../router/Link";
import { pathOf, type QueryValues } from "../../router/location";
import { Text } from "../../text/Text";
import { familyOf } from "./kinds";

/** Where one finds what a fact is about. */
function placeOf(fact: EventRow): { to: string; query?: QueryValues } | null {
  const { id } = fact;
  switch (familyOf(fact.kind)) {
    case "task":
      return { to: pathOf("tasks", id) };
    case "worker":
    case "leader":
      return { to: pathOf("workers", id) };
    case "schedule":
      return { to: pathOf("schedules", id) };
    case "queue":
      return { to: pathOf("queues", id) };
    case "alert":
      return { to: pathOf("alerts", id) };
    case "breaker":
      return { to: pathOf("limits", "breakers", id) };
    case "limit":
    case "switch":
      return { to: "limits" };
    case "type":
      return { to: "tasks", query: { q: `type:${quote(id)}` } };
    default:
      return null;
  }
}

/** What a fact is about: a task by its type and the tail of its id, anything else by its name. */
export function Subject({ fact }: { fact: EventRow }) {
  const place = placeOf(fact);
  if (familyOf(fact.kind) === "task") {
    return (
      <>
        <Text>{fact.type}</Text>{" "}
        <Link class="mono dim" to={place?.to ?? ""}>
          <Text>{shortId(fact.id)}</Text>
        </Link>
      </>
    );
  }
  const name = <Text>{fact.id}</Text>;
  return place ? (
    <Link to={place.to} query={place.query}>
      {name}
    </Link>
  ) : (
    name
  );
}
