import { Menu } from "../components/Menu";
import { plural } from "../format/numbers";
import { Icon } from "../icons/Icon";
import { namespace, navigate } from "../router/location";
import { counts } from "../state/counts";
import { session } from "../state/session";
import { Text } from "../text/Text";

/** The namespace that is shown; a menu where there are several. */
export function NamespaceMenu() {
  const who = session.value;
  const shown = namespace.value || who?.namespace || "Tickwork";
  const workers = counts.value?.workers;
  const body = (
    <>
      <span class="mark">
        <Icon name="mark" />
      </span>
      <span>
        <b>
          <Text>{shown}</Text>
        </b>
        <small>{workers === undefined ? "\u00a0" : plural(workers, "worker")}</small>
      </span>
    </>
  );
  if (!who || who.namespaces.length < 2) return <div class="ns">{body}</div>;
  return (
    <Menu
      label="Namespace"
      entries={who.namespaces.map((name) => ({
        label: <Text>{name}</Text>,
        checked: name === shown,
        run: () => navigate("", { ns: name === who.namespace ? null : name }),
      }))}
      trigger={({ open, isOpen, ref }) => (
        <button type="button" class="ns" aria-haspopup="menu" aria-expanded={isOpen} onClick={open} ref={ref}>
          {body}
          <Icon name="down" />
        </button>
      )}
    />
  );
}
