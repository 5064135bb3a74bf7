import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatBytes, plural } from "../format/numbers";
import { Text } from "../text/Text";
import { Button } from "./Button";
import { saveJson } from "./saving";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

interface JsonViewerProps {
  value: Json;
  /** How the API writes a field that this role may not see. */
  maskedAs?: string;
  /** A name for the file, if it is too long to be shown whole. */
  fileName?: string;
}

const OPEN_LEVELS = 3;
const OPEN_ENTRIES = 100;
const MOST_SHOWN = 64_000;

/** JSON as plain text, folded past three levels or a hundred entries. Of a long one only the first part is drawn. */
export function JsonViewer({ value, maskedAs = "***", fileName = "value.json" }: JsonViewerProps) {
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "null", [value]);
  const size = useMemo(() => new Blob([text]).size, [text]);
  if (size > MOST_SHOWN) {
    return (
      <div class="json">
        <pre tabIndex={0}>
          <Text>{text.slice(0, MOST_SHOWN / 8)}</Text>
        </pre>
        <p class="row dim">
          The first part of {formatBytes(size)}.
          <Button small icon="download" onClick={() => saveJson(text, fileName)}>
            Download {formatBytes(size)}
          </Button>
        </p>
      </div>
    );
  }
  return (
    <div class="json">
      <pre tabIndex={0}>
        <Value value={value} depth={0} maskedAs={maskedAs} tail="" />
      </pre>
    </div>
  );
}

interface ValueProps {
  value: Json;
  depth: number;
  maskedAs: string;
  /** What follows: a comma, or nothing. */
  tail: string;
}

function Value({ value, depth, maskedAs, tail }: ValueProps) {
  if (value === maskedAs) return <><span class="m">masked for your role</span>{tail}</>;
  if (value === null || typeof value !== "object") return <><Text>{JSON.stringify(value)}</Text>{tail}</>;
  return <Branch value={value} depth={depth} maskedAs={maskedAs} tail={tail} />;
}

function Branch({ value, depth, maskedAs, tail }: ValueProps & { value: Json[] | { [name: string]: Json } }) {
  const isList = Array.isArray(value);
  const entries: [string, Json][] = Object.entries(value);
  const [isOpen, setOpen] = useState(depth < OPEN_LEVELS && entries.length <= OPEN_ENTRIES);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return <>{`${open}${close}${tail}`}</>;
  if (!isOpen) {
    return (
      <>
        <button type="button" class="fold" aria-expanded={false} onClick={() => setOpen(true)}>
          {open}…{close} {plural(entries.length, "entry", "entries")}
        </button>
        {tail}
      </>
    );
  }
  const indent = "  ".repeat(depth + 1);
  const lines: ComponentChildren[] = entries.map(([name, item], at) => (
    <span key={name}>
      {indent}
      {!isList && (
        <span class="k">
          <Text>{JSON.stringify(name)}</Text>:{" "}
        </span>
      )}
      <Value value={item} depth={depth + 1} maskedAs={maskedAs} tail={at < entries.length - 1 ? "," : ""} />
      {"\n"}
    </span>
  ));
  return (
    <>
      {`${open}\n`}
      {lines}
      {`${"  ".repeat(depth)}${close}${tail}`}
    </>
  );
}
