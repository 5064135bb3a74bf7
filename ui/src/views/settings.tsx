import { Tabs } from "../components/Tabs";
import "../styles/views/settings.css";
import { Config } from "./settings/Config";
import { Display } from "./settings/Display";
import { Store } from "./settings/Store";
import { Tokens } from "./settings/Tokens";
import NotFoundView from "./not-found";

const TABS = {
  display: { label: "Display", View: Display },
  tokens: { label: "Tokens", View: Tokens },
  config: { label: "Options", View: Config },
  store: { label: "Store", View: Store },
} as const;

type TabName = keyof typeof TABS;

function isTab(name: string): name is TabName {
  return Object.hasOwn(TABS, name);
}

export default function SettingsView({ params }: { params: { tab?: string } }) {
  const name = params.tab ?? "display";
  if (!isTab(name)) return <NotFoundView />;
  const { View } = TABS[name];
  return (
    <>
      <Tabs
        label="Settings"
        tabs={(Object.keys(TABS) as TabName[]).map((tab) => ({ label: TABS[tab].label, to: tab === "display" ? "settings" : `settings/${tab}`, current: tab === name }))}
      />
      <View />
    </>
  );
}
