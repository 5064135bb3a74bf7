import type { ComponentChildren } from "preact";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { Radios } from "../../components/Check";
import { KeyValue } from "../../components/KeyValue";
import { Segments } from "../../components/Segments";
import { Switch } from "../../components/Switch";
import { formatClock, formatDay, zoneAbbreviation } from "../../format/times";
import { isKeysOpen } from "../../shell/KeysDialog";
import { signOut } from "../../shell/session";
import { secondTick } from "../../state/clock";
import { type Density, prefs, setPref, type Theme, type Zone } from "../../state/prefs";
import { session } from "../../state/session";
import { Text } from "../../text/Text";

const THEMES = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
] as const satisfies readonly { value: Theme; label: string }[];

const DENSITIES = [
  { value: "normal", label: "Normal" },
  { value: "compact", label: "Compact" },
] as const satisfies readonly { value: Density; label: string }[];

/** What this browser remembers about how things look. */
export function Display() {
  return (
    <div class="settings-two">
      <Card title="Display" more="Kept by this browser">
        <Setting name="Theme" about={<>The key <kbd>d</kbd> switches between light and dark.</>}>
          <Segments label="Theme" options={THEMES} value={prefs.value.theme} onChange={(theme) => setPref("theme", theme)} />
        </Setting>
        <Setting name="Density" about="How high the rows of lists are.">
          <Segments label="Density" options={DENSITIES} value={prefs.value.density} onChange={(density) => setPref("density", density)} />
        </Setting>
        <Setting name="Time zone" about="Times show their zone, and the time in UTC, on hover and on focus.">
          <ZoneChoice />
        </Setting>
        <Setting name="Keys" about={<><kbd>Ctrl K</kbd> works either way.</>}>
          <div class="stack settings-keys">
            <Switch on={prefs.value.singleKeys} onChange={(on) => setPref("singleKeys", on)}>
              Single keys act
            </Switch>
            <span>
              <Button small onClick={() => (isKeysOpen.value = true)}>
                Show all keys
              </Button>
            </span>
          </div>
        </Setting>
      </Card>
      <You />
    </div>
  );
}

function Setting({ name, about, children }: { name: string; about: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="setting">
      <div>
        <h3>{name}</h3>
        <p class="small dim">{about}</p>
      </div>
      <div>{children}</div>
    </div>
  );
}

function clockIn(zone: string): string {
  const now = secondTick.value;
  return `${formatDay(now, zone)}, ${formatClock(now, zone)} ${zoneAbbreviation(now, zone)}`;
}

function ZoneChoice() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const option = (value: Zone, label: string, note: string) => ({
    value,
    label: (
      <>
        {label}
        <span class="small dim zone-note">{note}</span>
      </>
    ),
  });
  return (
    <Radios
      label="Time zone"
      value={prefs.value.zone}
      onChange={(zone) => setPref("zone", zone)}
      options={[
        option("local", `Yours, ${own}`, clockIn(own)),
        option("UTC", "UTC", clockIn("UTC")),
        option("schedule", "The schedule's own", `For the times of a schedule; all else in ${own}`),
      ]}
    />
  );
}

const VIA: Readonly<Record<string, string>> = {
  loopback: "from this machine, without a token",
  session: "signed in with a token",
  token: "by a token",
  proxy: "signed in by the proxy",
};

const RIGHTS: Readonly<Record<string, string>> = { view: "look", submit: "submit", operate: "operate", work: "run tasks", administer: "administer" };

function inOrder(rights: readonly string[]): string {
  return Object.keys(RIGHTS)
    .filter((right) => rights.includes(right))
    .map((right) => RIGHTS[right])
    .join(", ");
}

function You() {
  const who = session.value;
  if (!who) return null;
  return (
    <Card title="You" more={who.via === "session" && <Button small onClick={() => void signOut()}>Sign out</Button>}>
      <KeyValue
        facts={[
          ["Name", <Text>{who.name}</Text>],
          ["Role", <>{who.role}, {VIA[who.via] ?? who.via}</>],
          ["You may", inOrder(who.rights)],
          ["Namespaces", <Text>{who.namespaces.join(", ")}</Text>],
          ["Masked", who.masked ? "Some fields of payloads, errors and tags are hidden from your role." : null],
          ["Version", <>Tickwork <Text>{who.version}</Text></>],
        ]}
      />
    </Card>
  );
}
