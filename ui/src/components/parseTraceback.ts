import type { Frame } from "./Traceback";

const FRAME_LINE = /^ {2}File "(.+)", line (\d+)(?:, in (.+))?$/;

/** The package a file belongs to, if it is no own code: what lies in site-packages, or in Python itself. */
function libraryOf(file: string): string | null {
  const parts = file.split(/[\\/]/);
  const packages = parts.lastIndexOf("site-packages");
  if (packages >= 0) return (parts[packages + 1] ?? "python").replace(/\.py$/, "");
  const tickwork = parts.lastIndexOf("tickwork");
  if (tickwork >= 0 && parts[tickwork - 1] === "src") return "tickwork";
  const python = parts.findIndex((part) => /^python3(\.\d+)?$/.test(part));
  return python >= 0 || file.startsWith("<") ? "python" : null;
}

/** The frames of a traceback as Python prints it. What cannot be read gives none, and the text is shown as it is. */
export function parseTraceback(text: string): Frame[] {
  const lines = text.split("\n");
  const frames: Frame[] = [];
  for (const [at, line] of lines.entries()) {
    const found = FRAME_LINE.exec(line);
    if (!found) continue;
    const next = lines[at + 1] ?? "";
    const code = next.startsWith("    ") && !FRAME_LINE.test(next) ? next.trim() : null;
    frames.push({ file: found[1] ?? "", line: Number(found[2]), function: found[3] ?? "", code, library: libraryOf(found[1] ?? "") });
  }
  return frames;
}
