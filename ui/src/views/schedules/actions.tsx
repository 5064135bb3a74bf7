import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { del, patch, post } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { Schedule } from "../../api/types/schedules";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import type { MenuEntry } from "../../components/Menu";
import { toast } from "../../components/toasts";
import { pathOf } from "../../router/location";
import { plainText } from "../../text/split";
import { AuditNoteField, noteMistake } from "../limits/FormDialog";
import { stateOf } from "./state";

export type Verb = "run" | "pause" | "resume" | "on" | "delete";

interface Plan {
  title: string;
  sentence: string;
  button: string;
  danger?: boolean;
  /** It takes a note. */
  asksWhy?: boolean;
  run: (note: string) => Promise<void>;
}

function pathTo(schedule: Schedule, ...rest: string[]): string {
  return pathOf("schedules", schedule.id, ...rest);
}

function planOf(verb: Verb, schedule: Schedule): Plan {
  const name = plainText(schedule.name);
  switch (verb) {
    case "run":
      return {
        title: `Run ${name} now`,
        sentence: `Submits one task of type ${plainText(schedule.type)}, beside the ticks of the schedule. The next tick stays where it is.`,
        button: `Run ${name} now`,
        run: async () => {
          const task = await post<{ id: string }>(pathTo(schedule, "trigger"));
          toast({ text: `${name} was triggered.`, tone: "good", link: { label: "Show the task", to: pathOf("tasks", task.id) } });
        },
      };
    case "pause":
      return {
        title: `Pause ${name}`,
        sentence: "It fires no more until it is resumed. A run that goes on is not touched, and ticks of the pause are not made up for.",
        button: `Pause ${name}`,
        asksWhy: true,
        run: (note) => post(pathTo(schedule, "pause"), { note }),
      };
    case "resume":
      return {
        title: `Resume ${name}`,
        sentence: "It goes on with the next tick from now. Ticks that it left out are not made up for.",
        button: `Resume ${name}`,
        run: () => post(pathTo(schedule, "resume")),
      };
    case "on":
      return {
        title: `Switch ${name} on`,
        sentence: "It fires from its next tick on.",
        button: `Switch ${name} on`,
        run: () => patch(pathTo(schedule), { enabled: true }),
      };
    case "delete":
      return {
        title: `Delete ${name}`,
        sentence: schedule.declared
          ? "It is removed with its history. Code writes it again at the next start; pause it instead if it shall rest."
          : "It is removed with its history. Tasks that it has submitted stay.",
        button: `Delete ${name}`,
        danger: true,
        run: () => del(pathTo(schedule)),
      };
  }
}

/** What lifts the state that a schedule is in; null if it fires. */
export function liftOf(schedule: Schedule): { verb: Verb; label: string } | null {
  const state = stateOf(schedule);
  if (state === "paused" || state === "stopped") return { verb: "resume", label: "Resume…" };
  return state === "off" ? { verb: "on", label: "Switch on…" } : null;
}

export interface ScheduleActions {
  ask: (verb: Verb, schedule: Schedule) => void;
  entries: (schedule: Schedule) => MenuEntry[];
  /** The open dialog, to be drawn by the view. */
  dialog: ComponentChildren;
}

/** The actions on schedules, each with its question. */
export function useScheduleActions(onDone: (verb: Verb) => void): ScheduleActions {
  const [asked, setAsked] = useState<{ verb: Verb; schedule: Schedule } | null>(null);
  const [note, setNote] = useState("");
  const ask = (verb: Verb, schedule: Schedule) => {
    setNote("");
    setAsked({ verb, schedule });
  };
  const entries = (schedule: Schedule): MenuEntry[] => {
    const lift = liftOf(schedule);
    return [
      { label: "Run now…", icon: "play", needs: "operator", run: () => ask("run", schedule) },
      lift ? { label: lift.label, icon: "play", needs: "operator", run: () => ask(lift.verb, schedule) } : { label: "Pause…", icon: "pause", needs: "operator", run: () => ask("pause", schedule) },
      { label: "Edit", to: pathTo(schedule, "edit"), icon: "settings", needs: "operator" },
      { label: "Copy as a new one", to: "schedules/new", query: { clone: schedule.id }, icon: "copy", needs: "operator" },
      { label: "Show its tasks", to: "tasks", query: { q: `schedule:${schedule.id}` }, icon: "tasks", apart: true },
      { label: "Delete…", icon: "close", danger: true, needs: "operator", apart: true, run: () => ask("delete", schedule) },
    ];
  };
  const confirm = async (plan: Plan, verb: Verb) => {
    try {
      await plan.run(note.trim());
      onDone(verb);
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad", seconds: 0 });
    }
  };
  const plan = asked && planOf(asked.verb, asked.schedule);
  const dialog = asked && plan && (
    <ConfirmDialog
      title={plan.title}
      sentence={() => plan.sentence}
      button={() => plan.button}
      danger={plan.danger ?? false}
      off={noteMistake(note)}
      onConfirm={() => void confirm(plan, asked.verb)}
      onClose={() => setAsked(null)}
    >
      {plan.asksWhy && <AuditNoteField value={note} onInput={setNote} />}
    </ConfirmDialog>
  );
  return { ask, entries, dialog };
}
