import { useSignal } from "@preact/signals";
import { del, put } from "../../api/client";
import { textOfError } from "../../api/errors";
import { useResource } from "../../api/resource";
import type { EndedSeries, SavedView } from "../../api/types/tasks";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { EmptyState } from "../../components/EmptyState";
import { Field } from "../../components/Field";
import { Menu, type MenuEntry } from "../../components/Menu";
import { toast } from "../../components/toasts";
import { Text } from "../../text/Text";

const STUCK = "status:ready,assigned,blocked,pending,retrying wait>5m -waits:time";

/** A round duration just over a number of seconds, as a filter writes it. */
export function roundedUp(seconds: number): string {
  if (seconds < 1) return `${Math.max(10, Math.ceil(seconds * 100) * 10)}ms`;
  if (seconds < 120) return `${Math.ceil(seconds)}s`;
  return `${Math.ceil(seconds / 60)}m`;
}

interface RunSeries extends EndedSeries {
  lines: (EndedSeries["lines"][number] & { run: ({ p99: number } | null)[] })[];
}

/** Slower than nearly all of the last hour: the highest p99 of its minutes would hide them, so the middle one is taken. */
function slowFilter(series: RunSeries | null): string {
  const known = (series?.lines[0]?.run ?? []).flatMap((run) => (run ? [run.p99] : [])).sort((one, other) => one - other);
  const middle = known[Math.floor(known.length / 2)];
  return `run>${middle === undefined ? "10s" : roundedUp(middle)}`;
}

/** Filters with a name: the built-in ones, and those that were saved for all. */
export function ViewsMenu({ filter, onChoose }: { filter: string; onChoose: (filter: string) => void }) {
  const saved = useResource<SavedView[]>(() => "views");
  const series = useResource<RunSeries>(() => "stats/series?minutes=60");
  const dialog = useSignal<"save" | "manage" | null>(null);
  const views = saved.data.value ?? [];
  const slow = slowFilter(series.data.value);
  const entries: MenuEntry[] = [
    { label: "Stuck", note: "waits over 5 min", checked: filter === STUCK, run: () => onChoose(STUCK) },
    { label: "Slow", note: slow, checked: filter === slow, run: () => onChoose(slow) },
    ...views.map((view, at) => ({ label: <Text>{view.name}</Text>, note: `by ${view.by}`, checked: view.filter === filter, apart: at === 0, run: () => onChoose(view.filter) })),
    { label: "Save this filter…", apart: true, needs: "operator", off: filter ? null : "There is no filter to save.", run: () => (dialog.value = "save") },
    { label: "Delete views…", needs: "operator", off: views.length > 0 ? null : "No view was saved.", run: () => (dialog.value = "manage") },
  ];
  return (
    <>
      <Menu label="Views" entries={entries}>
        Views
      </Menu>
      {dialog.value === "save" && <SaveDialog filter={filter} known={views} onClose={() => (dialog.value = null)} onSaved={() => void saved.refresh()} />}
      {dialog.value === "manage" && <ManageDialog views={views} onClose={() => (dialog.value = null)} onChange={() => void saved.refresh()} />}
    </>
  );
}

const NAME = /^[A-Za-z0-9._:@-]{1,128}$/;

function SaveDialog({ filter, known, onClose, onSaved }: { filter: string; known: readonly SavedView[]; onClose: () => void; onSaved: () => void }) {
  const name = useSignal("");
  const problem = useSignal<string | null>(null);
  const isWrong = name.value !== "" && !NAME.test(name.value);
  const isTaken = known.some((view) => view.name === name.value);
  const save = async () => {
    try {
      await put(`views/${encodeURIComponent(name.value)}`, { filter });
      onSaved();
      onClose();
      toast({ text: `The view ${name.value} is saved for all who use this namespace.` });
    } catch (error) {
      problem.value = textOfError(error);
    }
  };
  return (
    <Dialog
      title="Save this filter"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button kind="prime" type="submit" off={name.value === "" ? "Give it a name." : isWrong ? "The name cannot be used." : null} onClick={() => void save()}>
            {isTaken ? "Replace the view" : "Save the view"}
          </Button>
        </>
      }
    >
      <form
        class="in"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.value && !isWrong) void save();
        }}
      >
        <p class="mono break">
          <Text>{filter}</Text>
        </p>
        <Field
          label="Name"
          value={name.value}
          onInput={(text) => (name.value = text.replace(/ /g, "-"))}
          hint={isTaken ? "A view of this name is replaced." : "Everybody who uses this namespace sees it."}
          error={problem.value ?? (isWrong ? "Letters, digits and . _ : @ - are allowed." : null)}
          autoFocus
        />
      </form>
    </Dialog>
  );
}

function ManageDialog({ views, onClose, onChange }: { views: readonly SavedView[]; onClose: () => void; onChange: () => void }) {
  const remove = async (view: SavedView) => {
    try {
      await del(`views/${encodeURIComponent(view.name)}`);
      onChange();
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad" });
    }
  };
  return (
    <Dialog title="Delete views" onClose={onClose} actions={<Button onClick={onClose} autoFocus>Back</Button>}>
      {views.length === 0 && <EmptyState>No view is left.</EmptyState>}
      <ul class="list">
        {views.map((view) => (
          <li key={view.name} class="saved-view">
            <span class="two">
              <Text>{view.name}</Text>
              <small class="mono">
                <Text>{view.filter}</Text>
              </small>
            </span>
            <span class="dim small">
              by <Text>{view.by}</Text>
            </span>
            <Button small danger needs="operator" onClick={() => void remove(view)}>
              Delete
            </Button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
