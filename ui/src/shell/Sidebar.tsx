import { formatCount } from "../format/numbers";
import { Button } from "../components/Button";
import { Icon } from "../icons/Icon";
import { Link } from "../router/Link";
import { match } from "../router/Outlet";
import { counts } from "../state/counts";
import { toggleTheme } from "../state/prefs";
import { session } from "../state/session";
import { Text } from "../text/Text";
import { NamespaceMenu } from "./NamespaceMenu";
import { NAV, type NavEntry } from "./nav";
import { signOut } from "./session";

export function Sidebar() {
  return (
    <aside class="side">
      <NamespaceMenu />
      <nav class="nav" aria-label="Main">
        {NAV.map((group, at) => (
          <ul key={at}>
            {group.map((entry) => (
              <li key={entry.section}>
                <Entry entry={entry} />
              </li>
            ))}
          </ul>
        ))}
      </nav>
      <Foot />
    </aside>
  );
}

function Entry({ entry }: { entry: NavEntry }) {
  const isCurrent = match.value.route.section === entry.section;
  return (
    <Link to={entry.to} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={entry.icon} />
      {entry.label}
      <NavCount entry={entry} />
    </Link>
  );
}

/** A number that asks for somebody is coloured and bold; zero of such says nothing and is left out. */
export function NavCount({ entry }: { entry: NavEntry }) {
  const known = counts.value;
  if (!known || !entry.count) return null;
  const count = entry.count(known) ?? 0;
  if (!Number.isFinite(count) || (entry.tone && count === 0)) return null;
  return <span class={entry.tone ? `n ${entry.tone}` : "n"}>{formatCount(count)}</span>;
}

function Foot() {
  const who = session.value;
  return (
    <div class="foot">
      <span>
        {who && (
          <>
            <b>
              <Text>{who.name}</Text>
            </b>
            , {who.role}
          </>
        )}
      </span>
      {who?.via === "session" && <Button kind="quiet" icon="out" label="Sign out" onClick={() => void signOut()} />}
      <Button kind="quiet" icon="theme" label="Light or dark (d)" onClick={toggleTheme} />
    </div>
  );
}
