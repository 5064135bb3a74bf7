import { useEffect, useMemo, useState } from "preact/hooks";
import { post } from "../api/client";
import { ApiError, textOfError } from "../api/errors";
import { useResource } from "../api/resource";
import type { KnownQueue, KnownType, NewTask, TaskValues, TaskView } from "../api/types/tasks";
import { Banner } from "../components/Banner";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Field } from "../components/Field";
import type { Json } from "../components/JsonViewer";
import { Loading, ReadError } from "../components/Loading";
import { Segments } from "../components/Segments";
import { shortId } from "../format/ids";
import { Link } from "../router/Link";
import { navigate, pathOf } from "../router/location";
import { useQueryParam } from "../router/query";
import { useTitle } from "../state/page";
import { zone } from "../state/prefs";
import { Text } from "../text/Text";
import { AboutType, Same } from "./submit/Aside";
import { OptionFields } from "./submit/OptionFields";
import { NO_OPTIONS, type OptionsDraft, optionsLike, readOptions } from "./submit/options";
import { PayloadForm } from "./submit/PayloadForm";
import { unmasked } from "./submit/masked";
import { type Draft, draftOf, type FieldShape, fitsForm, formOf, readDraft } from "./submit/schema";
import "../styles/views/submit.css";

/** What the form begins with: nothing, or a task that is to be submitted once more. */
interface Start {
  type: string;
  payload: Json;
  options: OptionsDraft;
  context: Record<string, Json>;
  clonedFrom: string | null;
}

export default function SubmitView() {
  const clone = useQueryParam("clone");
  const wanted = useQueryParam("type");
  const types = useResource<KnownType[]>(() => "types");
  const queues = useResource<KnownQueue[]>(() => "queues");
  const source = useResource<TaskView>(() => (clone.value ? `tasks/${encodeURIComponent(clone.value)}` : null));
  const values = useResource<TaskValues>(() => (clone.value ? `tasks/${encodeURIComponent(clone.value)}/payload` : null));
  useTitle(clone.value ? "Clone and edit" : "Submit a task", [{ label: "Tasks", to: "tasks" }]);
  if (clone.value) {
    if (source.error.value?.status === 404) return <Card><EmptyState action={<Link class="go" to="tasks/new">Begin with an empty form</Link>}>The task to clone is no longer kept.</EmptyState></Card>;
    if (!source.data.value || !values.data.value) return <Card>{source.error.value ? <ReadError of={source} /> : <Loading of={source} rows={6} />}</Card>;
  }
  if (!types.data.value) return <Card>{types.error.value ? <ReadError of={types} /> : <Loading of={types} rows={6} />}</Card>;
  const task = clone.value ? source.data.value : null;
  const start: Start = task
    ? { type: task.type, payload: unmasked(values.data.value?.payload ?? null), context: values.data.value?.context ?? {}, options: optionsLike(task), clonedFrom: task.id }
    : { type: wanted.value, payload: null, context: {}, options: NO_OPTIONS, clonedFrom: null };
  return <Form key={clone.value} start={start} types={types.data.value} queues={queues.data.value ?? []} isMasked={task?.masked ?? false} />;
}

interface PayloadState {
  how: "form" | "json";
  draft: Draft;
  text: string;
}

function jsonText(payload: Json): string {
  return payload === null ? "" : JSON.stringify(payload, null, 2);
}

function payloadState(fields: readonly FieldShape[] | null, payload: Json): PayloadState {
  const isForm = fields !== null && fitsForm(fields, payload);
  return { how: isForm ? "form" : "json", draft: fields ? draftOf(fields, payload) : {}, text: jsonText(payload) };
}

/** The payload that is typed, or what is wrong with it. Nothing typed is no payload. */
function readPayload(state: PayloadState, fields: readonly FieldShape[] | null): { payload?: Json; mistakes: Readonly<Record<string, string>>; mistake: string | null } {
  if (state.how === "form" && fields) {
    const { value, mistakes } = readDraft(fields, state.draft);
    return { ...(fields.length > 0 ? { payload: value } : {}), mistakes, mistake: null };
  }
  if (state.text.trim() === "") return { mistakes: {}, mistake: null };
  try {
    return { payload: JSON.parse(state.text) as Json, mistakes: {}, mistake: null };
  } catch (error) {
    return { mistakes: {}, mistake: `This is not JSON: ${textOfError(error)}` };
  }
}

interface FormProps {
  start: Start;
  types: readonly KnownType[];
  queues: readonly KnownQueue[];
  isMasked: boolean;
}

function Form({ start, types, queues, isMasked }: FormProps) {
  const [name, setName] = useState(start.type);
  const [options, setOptions] = useState(start.options);
  const type = types.find((one) => one.name === name) ?? null;
  const fields = useMemo(() => formOf(type?.schema), [type]);
  const [payload, setPayload] = useState(() => payloadState(fields, start.payload));
  const [isTried, setTried] = useState(false);
  const [isSending, setSending] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  useEffect(() => {
    // Another type asks for other fields; a clone keeps its payload for its own type.
    if (name !== start.type || !start.clonedFrom) setPayload(payloadState(fields, null));
  }, [fields]);

  const read = readPayload(payload, fields);
  const { fields: chosen, mistakes } = readOptions(options, zone.value);
  const task: NewTask = {
    type: name.trim(),
    ...(read.payload === undefined ? {} : { payload: read.payload }),
    ...chosen,
    ...(Object.keys(start.context).length > 0 ? { context: start.context } : {}),
  };
  const count = Object.keys(read.mistakes).length + Object.keys(mistakes).length + (read.mistake ? 1 : 0) + (task.type === "" ? 1 : 0);
  const submit = async () => {
    setTried(true);
    if (count > 0 || isSending) return;
    setSending(true);
    setRefusal(null);
    try {
      const made = await post<TaskView>("tasks", task);
      navigate(pathOf("tasks", made.id));
    } catch (error) {
      setRefusal(error instanceof ApiError ? error : new ApiError(0, "unknown", textOfError(error)));
    } finally {
      setSending(false);
    }
  };
  const payloadRefusal = refusal?.code === "bad_payload" ? refusal.detail : null;
  return (
    <form
      class="aside submit-form"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div class="stack">
        {start.clonedFrom && (
          <Banner>
            A copy of <Link class="go" to={pathOf("tasks", start.clonedFrom)}>{shortId(start.clonedFrom)}</Link>. That task is not changed{isMasked ? "; fields that are masked for your role must be filled in again" : ""}.
          </Banner>
        )}
        {refusal && !payloadRefusal && <Refusal refusal={refusal} />}
        <Card title="What" padded>
          <Field label="Type" value={name} onInput={setName} suggestions={types.map((one) => one.name)} autoFocus={!start.type} hint={type || name === "" ? undefined : "No worker that is up knows this type. The task waits until one does."} error={isTried && task.type === "" ? "Say which type of task." : null} />
        </Card>
        <Card
          title="Payload"
          more={fields && <Segments label="How the payload is given" options={[{ value: "form", label: "Form" }, { value: "json", label: "JSON" }]} value={payload.how} onChange={(how) => setPayload(switched(payload, how, fields))} />}
          padded
        >
          <div class="stack payload-fields">
            {payload.how === "form" && fields ? (
              <>
                {fields.length === 0 && <p class="dim">This type takes no payload.</p>}
                <PayloadForm fields={fields} draft={payload.draft} mistakes={isTried ? read.mistakes : {}} onChange={(place, value) => setPayload({ ...payload, draft: { ...payload.draft, [place]: value } })} />
                {payloadRefusal && <Banner tone="bad">{payloadRefusal}</Banner>}
              </>
            ) : (
              <Field label="Payload as JSON" value={payload.text} onInput={(text) => setPayload({ ...payload, text })} rows={8} code hint="A value for one parameter, an object for several; empty for none." error={payloadRefusal ?? (isTried || payload.text.length > 2 ? read.mistake : null)} />
            )}
          </div>
        </Card>
        <Card title="Options" padded>
          <OptionFields draft={options} mistakes={mistakes} isTried={isTried} onChange={(change) => setOptions({ ...options, ...change })} type={type} queues={queues} />
        </Card>
        <div class="btn-row submit-acts">
          <Button kind="prime" type="submit" needs="submitter" off={isSending ? "It is being submitted." : null}>
            Submit the task
          </Button>
          <Button onClick={() => history.back()}>Back</Button>
          {isTried && count > 0 && <span class="c-bad" role="alert">{count === 1 ? "One field needs a look." : `${count} fields need a look.`}</span>}
        </div>
      </div>
      <div class="stack sticky-pane">
        <Same task={task} />
        {type && <AboutType type={type} />}
      </div>
    </form>
  );
}

/** The other way of giving the payload, with what was typed so far. */
function switched(state: PayloadState, how: PayloadState["how"], fields: readonly FieldShape[]): PayloadState {
  if (how === state.how) return state;
  if (how === "json") return { ...state, how, text: jsonText(readDraft(fields, state.draft).value) };
  const { payload } = readPayload(state, fields);
  return { ...state, how, draft: draftOf(fields, payload ?? null) };
}

function Refusal({ refusal }: { refusal: ApiError }) {
  const existing = refusal.extra.existing_id;
  return (
    <Banner tone="bad" action={typeof existing === "string" && <Link class="btn" to={pathOf("tasks", existing)}>Show that task</Link>}>
      It was not submitted: <Text>{refusal.detail}</Text>
    </Banner>
  );
}
