import { useId, useState } from "preact/hooks";
import { post } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { CallerRole, MakeToken, NewToken } from "../../api/types/settings";
import { Banner } from "../../components/Banner";
import { Button } from "../../components/Button";
import { Check, Radios } from "../../components/Check";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Select } from "../../components/Select";
import { formatDate } from "../../format/times";
import { storeNow } from "../../state/clock";
import { zone } from "../../state/prefs";
import { session } from "../../state/session";
import { Text } from "../../text/Text";

const ROLES: readonly { value: CallerRole; label: string; may: string }[] = [
  { value: "viewer", label: "Viewer", may: "It may look at everything but the audit log, options and tokens; fields that are masked stay hidden." },
  { value: "submitter", label: "Submitter", may: "It may look, and submit tasks." },
  { value: "operator", label: "Operator", may: "It may also cancel, retry, pause, limit and change schedules, and read the audit log." },
  { value: "admin", label: "Admin", may: "It may do everything, also make and revoke tokens." },
  { value: "worker", label: "Worker", may: "For programs that run tasks over the network. Nobody can sign in with it." },
];

const DAY = 86_400;
const ENDS = [
  { value: String(DAY), label: "In 1 day" },
  { value: String(7 * DAY), label: "In 7 days" },
  { value: String(30 * DAY), label: "In 30 days" },
  { value: String(90 * DAY), label: "In 90 days" },
  { value: String(365 * DAY), label: "In 1 year" },
  { value: "", label: "Never" },
];

const LONGEST_NAME = 100;

interface NewTokenDialogProps {
  onMade: (made: NewToken) => void;
  onClose: () => void;
}

/** Asks for all that a token is: a name, a role, namespaces and an end. */
export function NewTokenDialog({ onMade, onClose }: NewTokenDialogProps) {
  const known = session.value?.namespaces ?? [];
  const form = useId();
  const [name, setName] = useState("");
  const [role, setRole] = useState<CallerRole>("viewer");
  const [reach, setReach] = useState<"all" | "some">("all");
  const [chosen, setChosen] = useState<readonly string[]>(known.slice(0, 1));
  const [expires, setExpires] = useState(String(90 * DAY));
  const [problem, setProblem] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const missing = name.trim() === "" ? "Give it a name first." : reach === "some" && chosen.length === 0 ? "Choose a namespace first." : null;
  const make = async () => {
    setSending(true);
    setProblem(null);
    const wanted: MakeToken = { name: name.trim(), role, namespaces: reach === "all" ? ["*"] : [...chosen], expires: expires ? Number(expires) : null };
    try {
      onMade(await post<NewToken>("tokens", wanted));
    } catch (error) {
      setProblem(textOfError(error));
      setSending(false);
    }
  };
  return (
    <Dialog
      title="Create a token"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button kind="prime" needs="admin" off={missing ?? (isSending ? "It is being made." : null)} onClick={() => void make()}>
            Create the token
          </Button>
        </>
      }
    >
      <form
        class="in"
        id={form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!missing && !isSending) void make();
        }}
      >
        {problem && <Banner tone="bad">It was not made: <Text>{problem}</Text></Banner>}
        <Field label="Name" value={name} onInput={(text) => setName(text.slice(0, LONGEST_NAME))} autoFocus hint="Who or what uses it: it stands in the audit log beside what is done with it." />
        <Select label="Role" value={role} onChange={setRole} options={ROLES} hint={ROLES.find((one) => one.value === role)?.may ?? ""} />
        <fieldset class="plain-set">
          <legend>Namespaces</legend>
          <Radios label="Namespaces" value={reach} onChange={setReach} options={[{ value: "all", label: "All of this store, also later ones" }, { value: "some", label: known.length > 1 ? "Only these" : <>Only <Text>{known[0] ?? "this one"}</Text></> }]} />
          {reach === "some" && known.length > 1 && <NamespaceChecks known={known} chosen={chosen} onChange={setChosen} />}
        </fieldset>
        <Select label="Expires" value={expires} onChange={setExpires} options={ENDS} hint={expires ? `It ends on ${formatDate(storeNow() + Number(expires) * 1000, zone.value, storeNow())}.` : "It is good until it is revoked."} />
      </form>
    </Dialog>
  );
}

function NamespaceChecks({ known, chosen, onChange }: { known: readonly string[]; chosen: readonly string[]; onChange: (chosen: readonly string[]) => void }) {
  return (
    <div class="namespace-checks">
      {known.map((name) => (
        <Check key={name} checked={chosen.includes(name)} onChange={(on) => onChange(on ? [...chosen, name] : chosen.filter((one) => one !== name))}>
          <Text>{name}</Text>
        </Check>
      ))}
    </div>
  );
}
