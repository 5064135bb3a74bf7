import { useState } from "preact/hooks";
import { patch, post } from "../../api/client";
import { textOfError } from "../../api/errors";
import type { WorkerInfo } from "../../api/types/workers";
import { Button } from "../../components/Button";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { toast } from "../../components/toasts";
import { plural } from "../../format/numbers";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";

const addressOf = (worker: WorkerInfo, act = "") => `${pathOf("workers", worker.id)}${act}`;

async function run(what: Promise<unknown>, onDone: () => void): Promise<void> {
  try {
    await what;
  } catch (error) {
    toast({ text: `The worker was not changed: ${textOfError(error)}`, tone: "bad", seconds: 0 });
  }
  onDone();
}

export function isDraining(worker: WorkerInfo): boolean {
  return worker.order.split(" ").includes("drain");
}

/** Somebody has changed its slots or queues; it can go back to its own options. */
export function isChanged(worker: WorkerInfo): boolean {
  return worker.order.split(" ").some((word) => word.includes("="));
}

/** It was asked for something that it does not do yet. */
export function isUnheard(worker: WorkerInfo): boolean {
  return worker.order !== worker.follows;
}

export function resumeWorker(worker: WorkerInfo, onDone: () => void): void {
  void run(post(addressOf(worker, "/resume")), onDone);
}

export function resetWorker(worker: WorkerInfo, onDone: () => void): void {
  void run(post(addressOf(worker, "/reset")), onDone);
}

interface ActDialogProps {
  worker: WorkerInfo;
  onDone: () => void;
  onClose: () => void;
}

export function DrainDialog({ worker, onDone, onClose }: ActDialogProps) {
  return (
    <ConfirmDialog
      title="Drain worker"
      sentence={() => (
        <>
          <b>
            <Text>{worker.id}</Text>
          </b>{" "}
          takes no more tasks{worker.running > 0 && `, and finishes the ${plural(worker.running, "task")} that it runs`}. It stays up until it is stopped; it can be resumed.
        </>
      )}
      button={() => "Drain worker"}
      onConfirm={() => void run(post(addressOf(worker, "/drain")), onDone)}
      onClose={onClose}
    />
  );
}

const MOST_SLOTS = 1_000_000;

function readQueues(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

function slotsMistake(text: string): string | null {
  const count = Number(text);
  return Number.isInteger(count) && count >= 1 && count <= MOST_SLOTS ? null : "A whole number from 1 on.";
}

/** Another number of slots, or other queues, until the worker ends or is reset. */
export function ChangeDialog({ worker, onDone, onClose }: ActDialogProps) {
  const [slots, setSlots] = useState(String(worker.capacity));
  const [queues, setQueues] = useState(worker.queues.join(", "));
  const [problem, setProblem] = useState<string | null>(null);
  const wanted = readQueues(queues);
  const sameQueues = wanted.join() === worker.queues.join();
  const sameSlots = Number(slots) === worker.capacity;
  const mistake = slotsMistake(slots) ?? (wanted.length === 0 ? "It needs at least one queue." : null);
  const save = async () => {
    try {
      await patch(addressOf(worker), { capacity: sameSlots ? null : Number(slots), queues: sameQueues ? null : wanted });
      onDone();
      onClose();
    } catch (error) {
      setProblem(textOfError(error));
    }
  };
  return (
    <Dialog
      title="Change worker"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button kind="prime" off={mistake ?? (sameSlots && sameQueues ? "Nothing is changed." : null)} onClick={() => void save()}>
            Change worker
          </Button>
        </>
      }
    >
      <div class="in">
        <p>It holds until the worker ends or is reset. What runs goes on, also if that is more than it may run then.</p>
        <Field label="Slots" type="number" value={slots} onInput={setSlots} error={slotsMistake(slots)} hint="How many tasks it runs at a time." autoFocus />
        <Field label="Queues" value={queues} onInput={setQueues} error={wanted.length === 0 ? "It needs at least one queue." : problem} hint="Names with commas between them." />
      </div>
    </Dialog>
  );
}
