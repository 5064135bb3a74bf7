import { get } from "../../api/client";
import type { KnownQueue, KnownType } from "../../api/types/tasks";
import type { ValueSource } from "../../components/FilterBar";
import type { Suggestion } from "../../components/filterSuggestions";
import { type Qualifier, TASK_QUALIFIERS } from "../../filter/qualifiers";
import { statusCounts } from "../../state/counts";
import type { Status } from "../../api/types";

const OWN: Readonly<Record<string, Partial<Qualifier>>> = {
  status: { hint: "ready, running, dead …", values: undefined },
  priority: { hint: "1 to 10; 5 is normal", values: ["10", "9", "8", "7", "6", "5", "4", "3", "2", "1"] },
  submitted: { comparisons: ["<", ">"], hint: "submitted<1h: within the last hour" },
  tag: {},
};

/** The qualifiers that the list of tasks answers. Statuses come with their counts, so they are asked for like names. */
export const LIST_QUALIFIERS: readonly Qualifier[] = [
  ...TASK_QUALIFIERS.filter((one) => one.name !== "workflow").map((one) => {
    const { values, ...rest } = { ...one, ...OWN[one.name] };
    return values ? { ...rest, values } : rest;
  }),
  { name: "group", comparisons: [":"], hint: "a group of failures" },
];

const STATUSES: readonly Status[] = ["ready", "running", "retrying", "pending", "blocked", "assigned", "success", "failed", "dead", "cancelled"];

/** A list that many key strokes ask for is read once in a while. */
function remembered<Item>(what: string, pick: (answer: unknown) => Item[]): (signal: AbortSignal) => Promise<Item[]> {
  let items: Item[] = [];
  let readAt = 0;
  return async (signal) => {
    if (Date.now() - readAt > 15_000) {
      items = pick(await get<unknown>(what, { signal }));
      readAt = Date.now();
    }
    return items;
  };
}

interface Named {
  id?: string;
  name?: string;
}

const itemsOf = (answer: unknown) => (Array.isArray(answer) ? answer : ((answer as { items?: unknown[] }).items ?? [])) as Named[];
const readTypes = remembered("types", (answer) => answer as KnownType[]);
const readQueues = remembered("queues", (answer) => answer as KnownQueue[]);
const readWorkers = remembered("workers", itemsOf);
const readSchedules = remembered("schedules", itemsOf);
const readErrors = remembered("failures", (answer) => ((answer as { items?: { error: string; total: number }[] }).items ?? []));

async function candidates(name: string, signal: AbortSignal): Promise<Suggestion[]> {
  switch (name) {
    case "status":
      return STATUSES.map((status) => ({ text: status, count: statusCounts.peek()[status] ?? 0 }));
    case "type":
      return (await readTypes(signal)).map((type) => ({ text: type.name, count: type.submitted, hint: "in the last hour" })).sort((one, other) => other.count - one.count);
    case "queue":
      return (await readQueues(signal)).map((queue) => ({ text: queue.name, count: queue.ready, hint: queue.paused ? "ready; paused" : "ready" }));
    case "worker":
      return (await readWorkers(signal)).map((worker) => ({ text: worker.id ?? "" }));
    case "schedule":
      return (await readSchedules(signal)).map((schedule) => ({ text: schedule.id ?? "" }));
    case "error":
      return (await readErrors(signal)).map((group) => ({ text: group.error, count: group.total })).filter((one, at, all) => all.findIndex((other) => other.text === one.text) === at);
    default:
      return [];
  }
}

/** Values of a qualifier from the store's own lists: those that begin with what was typed, then those that hold it. */
export const valuesFor: ValueSource = async (name, typed, signal) => {
  const wanted = typed.toLowerCase();
  const all = (await candidates(name, signal)).filter((one) => one.text.toLowerCase().includes(wanted));
  const begins = (one: Suggestion) => one.text.toLowerCase().startsWith(wanted);
  return name === "status" && wanted === "" ? all : [...all.filter(begins), ...all.filter((one) => !begins(one))];
};
