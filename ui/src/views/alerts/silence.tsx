import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { Alert, Hush } from "../../api/types/events";
import { Button } from "../../components/Button";
import { TimeAgo } from "../../components/TimeAgo";
import { toast } from "../../components/toasts";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { HushDialog } from "../limits/HushDialog";

/** "silenced by ines until 09:00: big import" */
export function Hushed({ word, hush }: { word: "silenced" | "muted"; hush: Hush }) {
  return (
    <span class="break">
      {word} by <Text>{hush.by}</Text> until <TimeAgo at={hush.until} form="near" />
      {hush.note && (
        <>
          : <Text>{hush.note}</Text>
        </>
      )}
    </span>
  );
}

export interface Silencing {
  ask: (alert: Alert) => void;
  end: (alert: Alert) => void;
  /** The open dialog, to be drawn by the view: a row may go while one writes. */
  dialog: ComponentChildren;
}

/** Silencing a rule, and ending that. */
export function useSilencing(onDone: () => void): Silencing {
  const [asked, setAsked] = useState<string | null>(null);
  const end = async (alert: Alert) => {
    try {
      await post("alerts/unsilence", { name: alert.name });
    } catch (error) {
      toast({ text: `The silence was not ended: ${textOfError(error)}`, tone: "bad", seconds: 0 });
    }
    onDone();
  };
  const dialog = asked !== null && (
    <HushDialog
      title="Silence an alert"
      sentence={
        <>
          Nobody is told that <b><Text>{asked}</Text></b> fires or is over: no observer, no webhook, no line of the log. It is still looked at, and if it fires when the silence ends, it is told then.
        </>
      }
      button="Silence the alert"
      run={(until, note) => post("alerts/silence", { name: asked, until, note })}
      onDone={onDone}
      onClose={() => setAsked(null)}
    />
  );
  return { ask: (alert) => setAsked(alert.name), end: (alert) => void end(alert), dialog };
}

/** Silences a rule, or ends its silence. */
export function SilenceButton({ alert, silencing, small }: { alert: Alert; silencing: Silencing; small?: boolean }) {
  const name = plainText(alert.name);
  return alert.silenced ? (
    <Button small={small ?? false} needs="operator" label={`End the silence of ${name}`} onClick={() => silencing.end(alert)}>
      End the silence
    </Button>
  ) : (
    <Button small={small ?? false} needs="operator" label={`Silence… ${name}`} onClick={() => silencing.ask(alert)}>
      Silence…
    </Button>
  );
}
