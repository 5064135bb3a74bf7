import { Button } from "../components/Button";
import { Icon } from "../icons/Icon";
import { Link } from "../router/Link";
import { navigate } from "../router/location";
import { match } from "../router/Outlet";
import { page } from "../state/page";
import { Text } from "../text/Text";
import { LiveMark } from "./LiveMark";
import { openPalette } from "./palette";
import { RangeSwitch } from "./RangeSwitch";

export function TopBar() {
  const { title, crumbs } = page.value;
  return (
    <header class="top">
      <h1>
        {crumbs.map((crumb) => (
          <span class="crumb" key={crumb.to}>
            <Link to={crumb.to}>{crumb.label}</Link>
            {" / "}
          </span>
        ))}
        <Text>{title}</Text>
      </h1>
      <span class="sp" />
      <LiveMark />
      {match.value.route.hasRange && <RangeSwitch />}
      <button type="button" class="jump" onClick={openPalette} aria-keyshortcuts="Control+K">
        <Icon name="search" />
        <span>Search or jump to</span>
        <kbd>Ctrl K</kbd>
      </button>
      <Button kind="prime" class="no-phone" needs="submitter" onClick={() => navigate("tasks/new")}>
        Submit a task
      </Button>
      <Button kind="quiet" icon="search" label="Search" class="only-phone" onClick={openPalette} />
    </header>
  );
}
