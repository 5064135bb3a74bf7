import { useMemo, useState } from "preact/hooks";
import { patch, post } from "../../api/client";
import { ApiError, textOfError } from "../../api/errors";
import type { LinePreview, Schedule } from "../../api/types/schedules";
import { Banner } from "../../components/Banner";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { toast } from "../../components/toasts";
import { plural } from "../../format/numbers";
import { navigate, pathOf } from "../../router/location";
import { plainText } from "../../text/split";
import { bodyOf, type Difference, differences, type Draft, type FieldName, mistakesOf, newBody } from "./form";
import { problemsOf, useLinePreview } from "./preview";
import { NameFields, RunFields, WhenFields } from "./ScheduleFields";
import { DifferenceList, PreviewCard } from "./SidePanel";

interface EditFormProps {
  /** What it begins with. */
  start: Draft;
  /** The schedule that is edited; null makes a new one. */
  schedule: Schedule | null;
}

/** The form of a schedule, with what the server makes of it beside it. */
export function EditForm({ start, schedule }: EditFormProps) {
  const [draft, setDraft] = useState(start);
  const [touched, setTouched] = useState<ReadonlySet<FieldName>>(new Set());
  const [isAsking, setAsking] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const before = useLinePreview(start.cron, start.timezone, start.dst);
  const preview = useLinePreview(draft.cron, draft.timezone, draft.dst);
  const changed = useMemo(() => differences(start, draft), [start, draft]);
  const isNew = schedule === null;
  const set = (name: FieldName, value: string) => {
    setDraft((known) => ({ ...known, [name]: value }));
    setTouched((known) => new Set(known).add(name));
    setRefusal(null);
  };
  const own = mistakesOf(draft);
  const problems = problemsOf(draft.cron.trim() === "" ? null : preview);
  const all = { ...own, ...(problems.cron ? { cron: problems.cron } : {}), ...(problems.timezone ? { timezone: problems.timezone } : {}) };
  // What nobody has touched yet is not told to be wrong.
  const shown = { ...Object.fromEntries(Object.entries(all).filter(([name]) => !isNew || touched.has(name as FieldName))), ...(refusal?.status === 409 ? { id: refusal.detail } : {}) };
  const wrong = Object.values(all)[0] ?? null;
  const off = wrong ?? (changed.length === 0 ? "Nothing is changed yet." : null);
  const ask = () => {
    if (off === null) setAsking(true);
    else setTouched(new Set(Object.keys(all) as FieldName[]));
  };
  const save = () => void saveDraft(draft, schedule, changed).catch((error: unknown) => setRefusal(error instanceof ApiError ? error : new ApiError(0, "unknown", textOfError(error))));
  const back = () => navigate(schedule ? pathOf("schedules", schedule.id) : "schedules");
  const fields = { draft, mistakes: shown, isNew, set, said: draft.cron.trim() === "" ? null : saidOf(preview) };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        ask();
      }}
    >
      {schedule?.declared && <Banner tone="heal">A program has this schedule in its code. What is changed here holds until it starts again and writes its own.</Banner>}
      {refusal && refusal.status !== 409 && <Banner tone="bad">It was not saved: {refusal.detail}</Banner>}
      <div class="aside edit">
        <div class="stack">
          {isNew && <NameFields {...fields} />}
          <WhenFields {...fields} />
          {!isNew && <NameFields {...fields} />}
          <RunFields {...fields} />
        </div>
        <div class="stack sticky-pane">
          <PreviewCard preview={preview} isEmpty={draft.cron.trim() === ""} />
          {!isNew && (
            <Card title="What changes" more={changed.length > 0 && plural(changed.length, "field")} padded>
              {changed.length === 0 ? <p class="mid">Nothing yet.</p> : <DifferenceList changed={changed} before={before} after={draft.cron.trim() === "" ? null : preview} />}
            </Card>
          )}
          <div class="btn-row">
            <Button kind="prime" type="submit" needs="operator" off={isNew ? null : off}>
              {isNew ? "Create the schedule…" : "Save…"}
            </Button>
            <Button onClick={back}>Back</Button>
          </div>
        </div>
      </div>
      {isAsking && <SaveDialog draft={draft} schedule={schedule} changed={changed} before={before} after={draft.cron.trim() === "" ? null : preview} onSave={save} onClose={() => setAsking(false)} />}
    </form>
  );
}

/** The line in words, and when it comes next: right under the field, where the eye is. */
function saidOf(preview: LinePreview | null): string | null {
  if (!preview || preview.problem !== null) return null;
  const next = preview.runs[0] ? `; next ${preview.runs[0].local}` : "; it never comes";
  return plainText(`${preview.description}, ${preview.timezone} time${next}`);
}

async function saveDraft(draft: Draft, schedule: Schedule | null, changed: readonly Difference[]): Promise<void> {
  const saved = schedule
    ? await patch<Schedule>(pathOf("schedules", schedule.id), bodyOf(draft, changed.map((one) => one.name)))
    : await post<Schedule>("schedules", newBody(draft));
  toast({ text: `${plainText(saved.name)} was ${schedule ? "changed" : "created"}.`, tone: "good" });
  navigate(pathOf("schedules", saved.id));
}

interface SaveDialogProps {
  draft: Draft;
  schedule: Schedule | null;
  changed: readonly Difference[];
  before: LinePreview | null;
  after: LinePreview | null;
  onSave: () => void;
  onClose: () => void;
}

/** The difference once more, before it is written. */
function SaveDialog({ draft, schedule, changed, before, after, onSave, onClose }: SaveDialogProps) {
  const name = plainText(schedule?.name ?? draft.id);
  const when = after ? `${after.description}, ${after.timezone} time` : "only when triggered";
  return (
    <ConfirmDialog
      title={schedule ? `Change ${name}` : `Create ${name}`}
      sentence={() => (schedule ? `Change ${plural(changed.length, "field")} of the schedule ${name}. It then runs ${when}.` : `Create the schedule ${name}, which runs ${plainText(draft.type)} ${when}.`)}
      button={() => (schedule ? `Change ${plural(changed.length, "field")}` : `Create ${name}`)}
      onConfirm={onSave}
      onClose={onClose}
    >
      <DifferenceList changed={changed} before={before} after={after} />
    </ConfirmDialog>
  );
}
