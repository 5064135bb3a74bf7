import type { Attempt } from "../../api/types/tasks";
import type { LogLevel, LogLine } from "../../components/LogTail";
import { toMillis } from "../../format/times";

const LINE = /^(\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})) ([A-Z]+) ([\s\S]*)$/;
const LEVELS: Readonly<Record<string, LogLevel>> = { DEBUG: "debug", INFO: "info", WARNING: "warning", WARN: "warning", ERROR: "error", CRITICAL: "error" };

/** Lines as a worker keeps them ("TIME LEVEL text"), each with the attempt that ran at its time. */
export function logLines(lines: readonly string[], runs: readonly Attempt[]): LogLine[] {
  let at: number | string = runs[0]?.started_at ?? 0;
  let level: LogLevel = "info";
  return lines.map((line) => {
    const found = LINE.exec(line);
    if (found) {
      at = found[1] ?? at;
      level = LEVELS[found[2] ?? ""] ?? "info";
    }
    const millis = toMillis(at);
    const run = runs.findLast((one) => toMillis(one.started_at) <= millis + 1);
    return { at, level, text: found ? (found[3] ?? "") : line, attempt: run?.number ?? runs[0]?.number ?? 1 };
  });
}
