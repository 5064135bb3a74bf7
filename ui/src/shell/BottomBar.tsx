import { Menu } from "../components/Menu";
import { formatCount } from "../format/numbers";
import { Icon } from "../icons/Icon";
import { Link } from "../router/Link";
import { match } from "../router/Outlet";
import { counts } from "../state/counts";
import { toggleTheme } from "../state/prefs";
import { session } from "../state/session";
import { NAV_ENTRIES, type NavEntry } from "./nav";
import { signOut } from "./session";

const SHOWN = ["overview", "tasks", "failures", "workers"];

/** The main places of a phone; the rest is in "More". */
export function BottomBar() {
  const section = match.value.route.section;
  const shown = NAV_ENTRIES.filter((entry) => SHOWN.includes(entry.section));
  const rest = NAV_ENTRIES.filter((entry) => !SHOWN.includes(entry.section));
  return (
    <nav class="bottom" aria-label="Main, on a phone">
      {shown.map((entry) => (
        <Link key={entry.section} to={entry.to} aria-current={entry.section === section ? "page" : undefined}>
          <Icon name={entry.icon} />
          {entry.label}
          <Alarm entry={entry} />
        </Link>
      ))}
      <Menu
        label="More places"
        entries={[
          ...rest.map((entry) => ({ label: entry.label, icon: entry.icon, to: entry.to })),
          { label: "Submit a task", icon: "plus" as const, to: "tasks/new", needs: "submitter" as const, apart: true },
          { label: "Light or dark", icon: "theme" as const, run: toggleTheme },
          ...(session.value?.via === "session" ? [{ label: "Sign out", icon: "out" as const, run: () => void signOut() }] : []),
        ]}
        trigger={({ open, isOpen, ref }) => (
          <button type="button" aria-haspopup="menu" aria-expanded={isOpen} aria-current={rest.some((entry) => entry.section === section) ? "page" : undefined} onClick={open} ref={ref}>
            <Icon name="more" />
            More
          </button>
        )}
      />
    </nav>
  );
}

function Alarm({ entry }: { entry: NavEntry }) {
  const known = counts.value;
  const count = entry.tone === "alarm" && known && entry.count ? entry.count(known) : 0;
  return count > 0 ? <span class="n">{count > 999 ? "999+" : formatCount(count)}</span> : null;
}
