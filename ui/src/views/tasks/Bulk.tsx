import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Status } from "../../api/types";
import type { BulkAction, TaskRow } from "../../api/types/tasks";
import { BulkBar } from "../../components/BulkBar";
import { Button } from "../../components/Button";
import { copyText } from "../../components/copy";
import { valuesOf } from "../../filter/tokens";
import { plural } from "../../format/numbers";
import { useKeys } from "../../keys/registry";
import { useActions } from "../../state/page";
import { reasonOff } from "../../components/Button";
import type { Target } from "./bulk";
import { BulkDialog } from "./BulkDialog";
import { actionsFor, VERBS } from "./verbs";

interface BulkProps {
  filter: string;
  rows: readonly TaskRow[];
  selection: Signal<ReadonlySet<string>>;
  /** How many match, where that is known. */
  total: number | null;
  onEnd: () => void;
}

const ALL: readonly Status[] = ["ready", "assigned", "running", "retrying", "pending", "blocked", "success", "failed", "dead", "cancelled"];
const KEYS: Readonly<Partial<Record<BulkAction, string>>> = { cancel: "c", retry: "r", run_now: "r" };

function targetOf({ filter, rows, selection }: BulkProps, isAll: boolean): Target {
  if (isAll) {
    const named = valuesOf(filter, "status") as Status[];
    return { ids: null, filter, statuses: named.length > 0 ? named : ALL };
  }
  const chosen = rows.filter((row) => selection.value.has(row.id));
  return { ids: chosen.map((row) => row.id), filter, statuses: [...new Set(chosen.map((row) => row.status))] };
}

/** What can be done with the chosen tasks, or with all that match. */
export function Bulk(props: BulkProps) {
  const { filter, selection, total, onEnd } = props;
  const isAll = useSignal(false);
  const asking = useSignal<BulkAction | null>(null);
  const isChosen = selection.value.size > 0;
  useEffect(() => {
    if (!isChosen) isAll.value = false;
  }, [isChosen]);
  useEffect(() => {
    isAll.value = false;
  }, [filter]);
  const target = targetOf(props, isAll.value);
  const actions = isChosen ? actionsFor(target.statuses) : [];
  const ask = (action: BulkAction) => {
    if (!reasonOff("operator", null)) asking.value = action;
  };
  const can = (action: BulkAction) => actions.includes(action);
  const again: BulkAction = can("retry") ? "retry" : "run_now";
  useKeys([
    { keys: "c", text: "Cancel the chosen tasks", group: "Chosen tasks", when: () => can("cancel"), run: () => ask("cancel") },
    { keys: "r", text: "Retry the chosen tasks, or run them now", group: "Chosen tasks", when: () => can(again), run: () => ask(again) },
    { keys: "y", text: "Copy the ids of the chosen tasks", group: "Chosen tasks", when: () => isChosen, run: () => copyIds() },
  ]);
  useActions(actions.map((action) => ({ label: `${nameOf(action)} the chosen tasks…`, run: () => ask(action), off: reasonOff("operator", null), key: KEYS[action] ?? "" })));
  const copyIds = () => void copyText([...selection.peek()].join("\n"), plural(selection.peek().size, "id"));
  return (
    <>
      <BulkBar selection={selection} matching={{ count: total, isChosen: isAll.value, choose: () => (isAll.value = true) }}>
        {actions.map((action) => (
          <Button key={action} kind="quiet" needs="operator" danger={action === "cancel" || action === "delete"} hint={action === "cancel" || action === again ? KEYS[action] : undefined} onClick={() => ask(action)}>
            {nameOf(action)}…
          </Button>
        ))}
        {!isAll.value && (
          <Button kind="quiet" onClick={copyIds}>
            Copy ids
          </Button>
        )}
      </BulkBar>
      {asking.value && <BulkDialog action={asking.value} target={target} onClose={() => (asking.value = null)} onBegin={() => (selection.value = new Set())} onEnd={onEnd} />}
    </>
  );
}

function nameOf(action: BulkAction): string {
  return `${VERBS[action].name}${VERBS[action].after}`;
}
