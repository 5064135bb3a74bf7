import { signal } from "@preact/signals";
import { namespace } from "../../router/location";

/** Numbers that the server tells only as they are now: what this page has seen of them, one point a read. */
export interface Sample {
  at: number;
  oldest: number;
  busy: number;
}

const MOST = 60;
const kept = signal<{ namespace: string; samples: readonly Sample[] }>({ namespace: "", samples: [] });

export function addSample(sample: Sample): void {
  const here = namespace.peek();
  const before = kept.peek().namespace === here ? kept.peek().samples : [];
  if (before.at(-1)?.at === sample.at) return;
  kept.value = { namespace: here, samples: [...before, sample].slice(-MOST) };
}

export function samples(): readonly Sample[] {
  return kept.value.namespace === namespace.value ? kept.value.samples : [];
}
