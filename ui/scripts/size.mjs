// Prints what the first load of each view transfers, compressed, and fails if one is over the budget.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const folder = new URL("../../src/tickwork/server/ui", import.meta.url).pathname;
const budget = 120_000;

function filesUnder(path) {
  return readdirSync(path).flatMap((name) => {
    const full = join(path, name);
    return statSync(full).isDirectory() ? filesUnder(full) : [full];
  });
}

const files = new Map(filesUnder(folder).map((path) => [relative(folder, path), readFileSync(path)]));
const packed = new Map([...files].map(([name, body]) => [name, gzipSync(body, { level: 9 }).length]));
const text = (name) => files.get(name)?.toString("utf8") ?? "";

/** A chunk and all that it imports before it runs. */
function withImports(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const [, other] of text(name).matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g)) withImports(`assets/${other}`, found);
  return found;
}

const page = text("index.html");
const named = [...page.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, name]) => name);
const entry = named.find((name) => name.startsWith("assets/") && name.endsWith(".js"));
const always = new Set(["index.html", ...named, ...withImports(entry)]);
const views = new Set([...always].flatMap((name) => [...text(name).matchAll(/import\(\s*["'`]\.\/([\w.-]+\.js)["'`]/g)].map(([, view]) => `assets/${view}`)));

const loads = [...views].map((view) => {
  const all = new Set([...always, ...withImports(view)]);
  return [view.replace(/^assets\/|-[\w-]{8}\.js$/g, ""), [...all].reduce((sum, name) => sum + (packed.get(name) ?? 0), 0)];
});
for (const [view, size] of loads.sort((one, other) => other[1] - one[1])) console.log(`${String(size).padStart(8)}  ${view}`);
const most = Math.max(...loads.map(([, size]) => size));
console.log(`${String(most).padStart(8)}  bytes at most for a first load, compressed; the budget is ${budget}`);
process.exit(loads.length === 0 || most > budget ? 1 : 0);
