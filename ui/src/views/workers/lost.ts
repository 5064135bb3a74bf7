import type { WorkerInfo } from "../../api/types/workers";
import { formatDuration } from "../../format/durations";

/** How it was lost, with how long it was given: from its last sign of life to the end of its lease, where that is known. */
export function howLost({ beat_at, expires_at }: Pick<WorkerInfo, "beat_at" | "expires_at">): string {
  const lease = Math.round((Date.parse(expires_at) - Date.parse(beat_at)) / 1000);
  return `not heard of for a whole lease${lease > 0 ? ` (${formatDuration(lease)})` : ""}`;
}
