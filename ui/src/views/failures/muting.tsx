import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { FailureGroup } from "../../api/types/failures";
import { Button } from "../../components/Button";
import { toast } from "../../components/toasts";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { Hushed } from "../alerts/silence";
import { HushDialog } from "../limits/HushDialog";
import { nameOf } from "./filter";

interface MutingProps {
  group: FailureGroup;
  onChanged: () => void;
}

/** Who has muted the group, and the way back. */
export function Muted({ group, onChanged }: MutingProps) {
  if (!group.muted) return null;
  const unmute = async () => {
    try {
      await post(pathOf("failures", group.id, "unmute"));
    } catch (error) {
      toast({ text: `The error is still muted: ${textOfError(error)}`, tone: "bad", seconds: 0 });
    }
    onChanged();
  };
  return (
    <div class="muted">
      <Hushed word="muted" hush={group.muted} />
      <Button small needs="operator" onClick={() => void unmute()}>
        Unmute
      </Button>
    </div>
  );
}

/** Asks for an end and a note, and mutes the group. */
export function MuteButton({ group, onChanged }: MutingProps) {
  const [isAsking, setAsking] = useState(false);
  if (group.muted) return null;
  return (
    <>
      <Button needs="operator" onClick={() => setAsking(true)}>
        Mute…
      </Button>
      {isAsking && (
        <HushDialog
          title="Mute an error"
          sentence={<>The overview asks nobody to look at <b><Text>{nameOf(group)}</Text></b> until then. Its tasks fail, die and are counted as before.</>}
          button="Mute the error"
          run={(until, note) => post(pathOf("failures", group.id, "mute"), { until, note })}
          onDone={onChanged}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
