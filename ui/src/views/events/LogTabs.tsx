import { Tabs } from "../../components/Tabs";

/** What happened, and who did what: two tabs of one place. */
export function LogTabs({ current }: { current: "events" | "audit" }) {
  return (
    <Tabs
      label="Logs"
      tabs={[
        { label: "Events", to: "events", current: current === "events" },
        { label: "Audit", to: "events/audit", current: current === "audit" },
      ]}
    />
  );
}
