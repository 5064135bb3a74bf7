import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";

/** Names of queues, each of which leads to its page. */
export function QueueLinks({ names }: { names: readonly string[] }) {
  return (
    <>
      {names.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <Link to={pathOf("queues", name)}>
            <Text>{name}</Text>
          </Link>
        </span>
      ))}
    </>
  );
}
