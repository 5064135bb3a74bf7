import { useSignal } from "@preact/signals";
import { apiUrl, get } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { LargeValue, TaskValues, TaskView } from "../../api/types/tasks";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { CopyMenu } from "../../components/CopyButton";
import { type Json, JsonViewer } from "../../components/JsonViewer";
import { toast } from "../../components/toasts";
import { formatBytes } from "../../format/numbers";
import { session } from "../../state/session";
import { Text } from "../../text/Text";
import { asCommand, asCurl, asPython } from "./copying";
import { MASKED } from "../submit/masked";
import { likeTask } from "./newTask";

/** The payload, the context and the result. What is too large to come with the task is read when it is asked for. */
export function Values({ task }: { task: TaskView }) {
  const whole = useSignal<TaskValues | null>(null);
  const read = async () => {
    try {
      whole.value = await get<TaskValues>(`tasks/${encodeURIComponent(task.id)}/payload`);
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad" });
    }
  };
  const valueOf = (name: LargeValue): Json => (task.large.includes(name) && whole.value ? whole.value[name] : task[name]);
  const isMissing = (name: LargeValue) => task.large.includes(name) && whole.value === null;
  const values = { payload: valueOf("payload"), context: valueOf("context") as TaskValues["context"] };
  const forms = [
    { name: "JSON", text: () => JSON.stringify(values.payload, null, 2) },
    { name: "curl", text: () => asCurl(likeTask(task, values), apiUrl("tasks"), session.peek()?.via !== "loopback") },
    { name: "CLI", text: () => asCommand(likeTask(task, values)) },
    { name: "Python", text: () => asPython(likeTask(task, values)) },
  ];
  const hasResult = isMissing("result") || valueOf("result") !== null;
  const shown = (name: LargeValue) => (isMissing(name) ? <Large bytes={name === "payload" ? task.payload_bytes : null} onRead={() => void read()} /> : <JsonViewer value={valueOf(name)} maskedAs={MASKED} fileName={`${task.id}-${name}.json`} />);
  return (
    <>
      <Card
        title="Payload"
        more={
          <>
            {(values.payload !== null || isMissing("payload")) && formatBytes(task.payload_bytes)}
            {!isMissing("payload") && <CopyMenu forms={forms} />}
          </>
        }
      >
        {values.payload === null && !isMissing("payload") ? <p class="c dim">It has no payload.</p> : shown("payload")}
        {task.masked && <p class="c dim small">Fields are masked for your role.</p>}
      </Card>
      {(isMissing("context") || Object.keys(values.context).length > 0) && <Card title="Context">{shown("context")}</Card>}
      {(hasResult || task.status === "success") && (
        <Card title="Result" more={task.result_code !== null && `code ${task.result_code}`}>
          {hasResult ? shown("result") : <p class="c dim">{task.result_message ? <Text>{task.result_message}</Text> : "It returned nothing."}</p>}
        </Card>
      )}
    </>
  );
}

function Large({ bytes, onRead }: { bytes: number | null; onRead: () => void }) {
  return (
    <div class="c row">
      <span class="mid">It is too large to come with the task.</span>
      <Button small onClick={onRead}>
        Show {bytes === null ? "it" : formatBytes(bytes)}
      </Button>
    </div>
  );
}
