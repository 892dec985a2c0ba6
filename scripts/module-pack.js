// Writes the module pack, which bin/module-pack.js reads.
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import module from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import {
  CACHE,
  HEAD,
  HEAD_BYTES,
  installedPackages,
  isSame,
  PACK,
  ROOT,
  readPack,
  sourceOf,
} from "../bin/module-pack.js";

/** Names in `import … from "x"`, `export … from "x"`, `import "x"` and `import("x")`; too many do no harm. */
const IMPORTED = /\b(?:from|import)\s*\(?\s*["']([^"'\n]+)["']/g;

/** `reuse`: sources that did not change are taken from the pack before. Not at an install, whose files may all have one time. */
export function writePack({ reuse = true } = {}) {
  const before = reuse ? readPack() : null;
  const [sources, texts, specifiers] = [{}, [], new Set()];
  let offset = 0;
  for (const path of globSync("src/**/*.ts", { cwd: ROOT }).sort()) {
    // Tests go Node's way, and the daemon of sandboxes runs on Bun.
    if (path.endsWith(".test.ts") || path.startsWith("src/sandboxd/")) continue;
    const stat = statSync(join(ROOT, path));
    const known = before?.sources[path];
    const text = known && isSame(known, stat) ? sourceOf(before, known) : stripped(path);
    const bytes = Buffer.from(text);
    sources[path] = [offset, bytes.length, stat.mtimeMs, stat.size];
    texts.push(bytes);
    offset += bytes.length;
    for (const name of namesIn(text)) if (!name.startsWith(".")) specifiers.add(name);
  }
  const index = { sources, ...findPackages(specifiers), installed: installedPackages() };
  const written = Buffer.from(JSON.stringify(index));
  mkdirSync(CACHE, { recursive: true, mode: 0o755 });
  const fresh = `${PACK}.${process.pid}`;
  const head = Buffer.from(`${HEAD}${written.length}`.padEnd(HEAD_BYTES));
  writeFileSync(fresh, Buffer.concat([head, written, ...texts]), { mode: 0o644 });
  renameSync(fresh, PACK);
}

const namesIn = (text) =>
  Array.from(text.matchAll(IMPORTED), ([, name]) => name).filter((name) => !/^node:/.test(name));

/** As Node's loader does it: types become spaces, so that places in messages stay true. */
function stripped(path) {
  const { emitWarning } = process;
  process.emitWarning = () => {}; // the function is marked as experimental, as type stripping itself was
  try {
    return module.stripTypeScriptTypes(readFileSync(join(ROOT, path), "utf8"));
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Where the packages are that our sources import, and the modules that those consist of. */
function findPackages(specifiers) {
  const [packages, packaged] = [{}, {}];
  for (const specifier of [...specifiers].sort()) {
    let path;
    try {
      path = relative(ROOT, fileURLToPath(import.meta.resolve(specifier)));
    } catch {
      continue; // only looks like an import
    }
    const format = path.startsWith("node_modules/") ? formatOf(path) : null;
    if (format === null) continue;
    packages[specifier] = [path, format];
    if (format === "module") addModules(path, packaged);
  }
  return { packages, packaged };
}

function addModules(path, packaged) {
  if (packaged[path]) return;
  packaged[path] = 1;
  for (const name of namesIn(readFileSync(join(ROOT, path), "utf8"))) {
    const imported = join(dirname(path), name);
    if (name.startsWith(".") && existsSync(join(ROOT, imported)) && formatOf(imported) === "module")
      addModules(imported, packaged);
  }
}

/** Null for what is neither of the two, which Node decides then. */
function formatOf(path) {
  if (path.endsWith(".mjs")) return "module";
  if (path.endsWith(".cjs")) return "commonjs";
  if (!path.endsWith(".js")) return null;
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    const note = join(ROOT, folder, "package.json");
    if (existsSync(note)) return JSON.parse(readFileSync(note, "utf8")).type === "module" ? "module" : "commonjs";
  }
  return null;
}

if (import.meta.main) writePack({ reuse: !process.argv.includes("--anew") });
