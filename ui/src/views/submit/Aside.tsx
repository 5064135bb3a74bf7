import { useState } from "preact/hooks";
import { apiUrl } from "../../api/client";
import type { KnownType, NewTask } from "../../api/types/tasks";
import { Card } from "../../components/Card";
import { CopyButton } from "../../components/CopyButton";
import { KeyValue } from "../../components/KeyValue";
import { Segments } from "../../components/Segments";
import { formatDuration } from "../../format/durations";
import { plural } from "../../format/numbers";
import { Link } from "../../router/Link";
import { session } from "../../state/session";
import { Text } from "../../text/Text";
import { asCommand, asCurl, asPython } from "../task/copying";

const FORMS = [
  { value: "curl", label: "curl" },
  { value: "cli", label: "CLI" },
  { value: "python", label: "Python" },
] as const;

/** The same without this page: what it will do, to be copied. */
export function Same({ task }: { task: NewTask }) {
  const [form, setForm] = useState<(typeof FORMS)[number]["value"]>("cli");
  const text = form === "curl" ? asCurl(task, apiUrl("tasks"), session.value?.via !== "loopback") : form === "cli" ? asCommand(task) : asPython(task);
  return (
    <Card title="The same without this page" more={<CopyButton text={text} label="Copy it" />}>
      <div class="c same">
        <Segments label="Form" options={FORMS} value={form} onChange={setForm} />
        <pre tabIndex={0} aria-label="What it will do">
          <Text>{text}</Text>
        </pre>
      </div>
    </Card>
  );
}

/** What is known of the type that is being submitted. */
export function AboutType({ type }: { type: KnownType }) {
  return (
    <Card title={<Text>{type.name}</Text>}>
      <KeyValue
        facts={[
          ["Workers", type.workers > 0 ? `${plural(type.workers, "worker")} ${type.workers === 1 ? "knows" : "know"} it` : "No worker that is up knows it."],
          ["State", type.paused && <span class="c-heal">It is paused: the task will wait.</span>],
          ["Submitted", <Link to="tasks" query={{ q: `type:${type.name}` }}>{plural(type.submitted, "task")} in the last hour</Link>],
          ["Run", type.run && `p50 ${formatDuration(type.run.p50)}, p95 ${formatDuration(type.run.p95)}`],
        ]}
      />
    </Card>
  );
}
