import { useEffect, useState } from "preact/hooks";
import { get } from "../../api/client";
import { ApiError, isAborted } from "../../api/errors";
import { parseTraceback } from "../../components/parseTraceback";
import { Traceback } from "../../components/Traceback";
import { shortId } from "../../format/ids";

interface Found {
  id: string;
  text: string;
}

/** The error of a task as its last attempt left it; null if the task is gone. */
async function readError(id: string, signal: AbortSignal): Promise<Found | null> {
  try {
    const task = await get<{ last_error: string | null }>(`tasks/${encodeURIComponent(id)}`, { signal });
    return task.last_error ? { id, text: task.last_error } : null;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** The traceback of the newest task of a group that still has one. Without any, nothing is shown. */
export function LastTraceback({ ids }: { ids: readonly string[] }) {
  const [found, setFound] = useState<Found | null>(null);
  const wanted = ids.slice(0, 5).join(" ");
  useEffect(() => {
    // One that is shown stays: a newer one of the same group says the same.
    if (found || !wanted) return;
    const control = new AbortController();
    const search = async () => {
      for (const id of wanted.split(" ")) {
        const error = await readError(id, control.signal);
        if (error) return setFound(error);
      }
    };
    search().catch((error: unknown) => !isAborted(error) && setFound(null));
    return () => control.abort();
  }, [wanted]);
  if (!found) return null;
  const frames = parseTraceback(found.text);
  const first = found.text.split("\n", 1)[0] ?? "";
  return <Traceback title={`Task ${shortId(found.id)}`} error={first} frames={frames} text={found.text} />;
}
