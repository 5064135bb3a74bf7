import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { plural } from "../format/numbers";
import type { Moment } from "../format/times";
import { Text } from "../text/Text";
import { Button } from "./Button";
import { Segments } from "./Segments";
import { InTable, TimeAgo } from "./TimeAgo";

export type LogLevel = "debug" | "info" | "warning" | "error";

export interface LogLine {
  at: Moment;
  attempt: number;
  level: LogLevel;
  text: string;
}

/** A page stays quick with this many; older ones are in the log itself. */
const MOST_LINES = 2000;
const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warning: 2, error: 3 };
const TONE: Readonly<Record<LogLevel, string>> = { debug: "dim", info: "mid", warning: "c-heal", error: "c-bad" };
const LEVELS = [
  { value: "debug", label: "All" },
  { value: "info", label: "Info" },
  { value: "warning", label: "Warnings" },
  { value: "error", label: "Errors" },
] as const;

/** Lines of a log. It follows only while it is scrolled to the end; else it says how many came. */
export function LogTail({ lines, label = "Log" }: { lines: readonly LogLine[]; label?: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [level, setLevel] = useState<LogLevel>("debug");
  const [seen, setSeen] = useState(0);
  const isAtEnd = useRef(true);
  const wanted = lines.filter((line) => (RANK[line.level] ?? 1) >= RANK[level]);
  const shown = wanted.slice(-MOST_LINES);
  const hidden = wanted.length - shown.length;
  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
    setSeen(wanted.length);
  };
  useLayoutEffect(() => {
    if (isAtEnd.current) toEnd();
  }, [wanted.length]);
  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 8;
    if (isAtEnd.current) setSeen(wanted.length);
  };
  const newer = wanted.length - seen;
  return (
    <InTable.Provider value={true}>
      <div class="log">
        <div class="row" style={{ padding: "4px 14px 6px" }}>
          <Segments label="Least level" options={LEVELS} value={level} onChange={setLevel} />
        </div>
        <div class="lines" role="log" aria-live="off" aria-label={label} tabIndex={0} ref={box} onScroll={onScroll}>
          {hidden > 0 && <p class="dim">{plural(hidden, "older line is", "older lines are")} not shown.</p>}
          {shown.map((line, at) => (
            <div class="ln" key={at}>
              <span>
                <TimeAgo at={line.at} form="millis" />
              </span>
              <span>#{line.attempt}</span>
              <span class={TONE[line.level] ?? "mid"}>{line.level === "warning" ? "warn" : line.level}</span>
              <span>
                <Text>{line.text}</Text>
              </span>
            </div>
          ))}
        </div>
        {newer > 0 && !isAtEnd.current && (
          <Button small class="newer" onClick={toEnd}>
            {plural(newer, "new line")}
          </Button>
        )}
      </div>
    </InTable.Provider>
  );
}
