import { useState } from "preact/hooks";
import { plural } from "../format/numbers";
import { Icon } from "../icons/Icon";
import { Text } from "../text/Text";
import { Button } from "./Button";
import { copyText } from "./copy";

export interface Frame {
  file: string;
  line: number | null;
  function: string;
  code: string | null;
  /** Code of a library: folded away. */
  library: string | null;
}

interface TracebackProps {
  /** "Attempt 2". */
  title?: string;
  /** The error first: its name and message. */
  error: string;
  /** The outermost call first, as Python writes them. */
  frames: readonly Frame[];
  /** The whole text, for copying. */
  text?: string;
}

/** Runs of frames that belong together: own ones open, those of libraries folded. */
function groups(frames: readonly Frame[]): Frame[][] {
  const made: Frame[][] = [];
  for (const frame of frames) {
    const last = made.at(-1);
    if (last && (last[0]?.library === null) === (frame.library === null)) last.push(frame);
    else made.push([frame]);
  }
  return made;
}

export function Traceback({ title, error, frames, text }: TracebackProps) {
  return (
    <div class="trace">
      <div class="tt">
        {title && <b>{title}</b>}
        <span class="e">
          <Text>{error}</Text>
        </span>
        {text && (
          <Button kind="quiet" small class="no-phone" onClick={() => void copyText(text, "The traceback")}>
            Copy
          </Button>
        )}
      </div>
      {frames.length === 0 && text && (
        <pre>
          <Text>{text}</Text>
        </pre>
      )}
      {groups(frames).map((group, at) => (group[0]?.library === null ? <Frames frames={group} key={at} /> : <Folded frames={group} key={at} />))}
    </div>
  );
}

function libraryNames(frames: readonly Frame[]): string {
  const names = [...new Set(frames.map((frame) => frame.library ?? ""))];
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : (names[0] ?? "");
}

function Folded({ frames }: { frames: readonly Frame[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} />
        <span>
          {plural(frames.length, "frame")} in <Text>{libraryNames(frames)}</Text>
        </span>
      </button>
      {isOpen && <Frames frames={frames} />}
    </>
  );
}

function Frames({ frames }: { frames: readonly Frame[] }) {
  return (
    <pre>
      {frames.map((frame, at) => (
        <span key={at} class={frame.library === null ? undefined : "fr"}>
          <Text>{frame.file}</Text>
          {frame.line === null ? "" : `:${frame.line}`} in{" "}
          <b>
            <Text>{frame.function}</Text>
          </b>
          {"\n"}
          {frame.code !== null && (
            <>
              {"    "}
              <Text>{frame.code.trim()}</Text>
              {"\n"}
            </>
          )}
        </span>
      ))}
    </pre>
  );
}
