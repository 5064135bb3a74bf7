import { signal } from "@preact/signals";
import { apiUrl, get } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { TaskPage } from "../../api/types/tasks";
import { Menu } from "../../components/Menu";
import { saveFrom, saveJson } from "../../components/saving";
import { toast, type ToastContent, type ToastHandle } from "../../components/toasts";
import { formatCount } from "../../format/numbers";
import { asJson, type Collected, collectTasks, FILE_MOST } from "./collect";

const TELL_AFTER = 1000;

/** The export that is on its way. It goes on when another view is opened. */
const current = signal<AbortController | null>(null);

function progressOf({ rows, looked, total }: Collected): ToastContent {
  const text = "Reads tasks for the file";
  if (total) return { text, progress: { done: Math.min(rows.length, total), total }, seconds: 0 };
  return { text: `${text}: ${formatCount(rows.length)} so far, of ${formatCount(looked)} looked at.`, seconds: 0 };
}

/** The API has the list as pages only, so they are put together here. */
async function exportJson(q: string): Promise<void> {
  const control = new AbortController();
  const began = performance.now();
  let shown: ToastHandle | null = null;
  const tell = (content: ToastContent) => {
    if (shown) shown.update(content);
    else shown = toast(content);
  };
  const told = (sofar: Collected) => {
    if (performance.now() - began >= TELL_AFTER) tell(progressOf(sofar));
  };
  // The first page alone may take long.
  const slow = setTimeout(() => tell({ text: "Reads tasks for the file.", seconds: 0 }), TELL_AFTER);
  current.value = control;
  try {
    const { rows, isCut } = await collectTasks((limit, cursor) => get<TaskPage>("tasks", { query: { q, limit, cursor }, signal: control.signal }), told);
    clearTimeout(slow);
    saveJson(asJson(rows), "tickwork-tasks.json");
    if (isCut) tell({ text: `The first ${formatCount(FILE_MOST)} tasks are in the file.` });
    else if (shown) tell({ text: `${formatCount(rows.length)} ${rows.length === 1 ? "task is" : "tasks are"} in the file.`, tone: "good" });
  } catch (error) {
    if (control.signal.aborted) tell({ text: "The export was stopped; there is no file.", seconds: 4 });
    else tell({ text: `There is no file: ${textOfError(error)}`, tone: "bad", seconds: 0 });
  } finally {
    clearTimeout(slow);
    current.value = null;
  }
}

/** The tasks of the filter as a file. */
export function ExportMenu({ filter, isWrong }: { filter: string; isWrong: boolean }) {
  const running = current.value;
  const off = isWrong ? "The filter has a mistake." : null;
  return (
    <Menu
      label="Export"
      entries={[
        { label: "CSV", off, run: () => saveFrom(apiUrl("tasks/export", { q: filter }), "tickwork-tasks.csv") },
        running ? { label: "Stop the JSON export", run: () => running.abort() } : { label: "JSON", off, run: () => void exportJson(filter) },
      ]}
    >
      Export
    </Menu>
  );
}
