import { signal } from "@preact/signals";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Switch } from "../components/Switch";
import { type KeyBinding, knownKeys } from "../keys/registry";
import { prefs, setPref } from "../state/prefs";

export const isKeysOpen = signal(false);

const ORDER = ["Go to", "Everywhere", "List", "This view"];

function byGroup(bindings: readonly KeyBinding[]): [string, KeyBinding[]][] {
  const groups = new Map<string, KeyBinding[]>(ORDER.map((name) => [name, []]));
  for (const binding of bindings) {
    if (!binding.group) continue;
    groups.set(binding.group, [...(groups.get(binding.group) ?? []), binding]);
  }
  return [...groups].filter(([, list]) => list.length > 0);
}

/** `?`: all keys that act now. */
export function KeysDialog() {
  if (!isKeysOpen.value) return null;
  const close = () => (isKeysOpen.value = false);
  return (
    <Dialog
      title="Keys"
      wide
      onClose={close}
      actions={
        <Button onClick={close} autoFocus>
          Close
        </Button>
      }
    >
      <div class="in">
        <div class="keylist">
          {byGroup(knownKeys.value).map(([name, bindings]) => (
            <section key={name}>
              <h3>{name}</h3>
              <dl>
                {bindings.map((binding) => (
                  <>
                    <dt>
                      {binding.keys.split(" ").map((key) => (
                        <>
                          <kbd>{key}</kbd>{" "}
                        </>
                      ))}
                    </dt>
                    <dd>{binding.text}</dd>
                  </>
                ))}
              </dl>
            </section>
          ))}
        </div>
        <Switch on={prefs.value.singleKeys} onChange={(on) => setPref("singleKeys", on)}>
          Single keys act. Ctrl K works either way.
        </Switch>
      </div>
    </Dialog>
  );
}
