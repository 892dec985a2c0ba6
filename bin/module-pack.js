// The module pack: our sources without their types in one file, and where the packages they import lie. Node's own way
// walks the folders for each of some 1,400 modules, reads each source and looks for its stripped copy; that was a third
// of a start. scripts/module-pack.js writes the pack. A module that is not in the pack, or whose file is not the one
// that was packed, goes Node's way.
import { fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** In our own folder, because code is run from it. */
export const CACHE = join(ROOT, "node_modules/.cache/berth");
export const PACK = join(CACHE, "modules");
/** The beginning of a pack: how it is written, and the length of its index. */
export const HEAD_BYTES = 32;
export const HEAD = "berth-modules-1 ";

/** From the outermost to the innermost: who may write to one of them can put another in the place of the next. */
const FOLDERS = [dirname(dirname(CACHE)), dirname(CACHE), CACHE];

/** False where somebody could write into the cache who could not write our sources: other tools open `.cache` to all. */
export function isCacheOurs() {
  const root = statSync(ROOT);
  return FOLDERS.every((folder) => {
    const stat = statSync(folder, { throwIfNoEntry: false });
    return stat === undefined || isOurs(stat, root);
  });
}

/** Whether root, the owner of our folder or this user has it, and only those write it who write our folder. */
function isOurs({ uid, gid, mode }, root) {
  const allowed = root.mode & (gid === root.gid ? 0o022 : 0o002);
  return [0, root.uid, process.geteuid?.()].includes(uid) && (mode & 0o022 & ~allowed) === 0;
}

/**
 * The index of the pack.
 *
 * sources: path → [offset, bytes, time of change, size] of each of our files
 * packaged: path → 1 for each file of a package that is an ECMAScript module
 * packages: name as it is imported → [path, format]
 * installed: which packages were there, as npm notes it
 */
export function readPack() {
  try {
    if (!isCacheOurs()) return null;
    const fd = openSync(PACK, "r");
    if (!isOurs(fstatSync(fd), statSync(ROOT))) return null;
    const head = bytesAt(fd, 0, HEAD_BYTES);
    if (!head.startsWith(HEAD)) return null;
    const indexBytes = Number(head.slice(HEAD.length));
    return { fd, start: HEAD_BYTES + indexBytes, ...JSON.parse(bytesAt(fd, HEAD_BYTES, indexBytes)) };
  } catch {
    return null; // there is none, or half of one
  }
}

/** What npm notes whenever it changes node_modules; null where npm did not install it. */
export function installedPackages() {
  const stat = statSync(join(ROOT, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.mtimeMs} ${stat.size}`;
}

export const sourceOf = ({ fd, start }, [offset, bytes]) => bytesAt(fd, start + offset, bytes);

export function isSame([, , changed, size], stat) {
  return stat !== undefined && stat.mtimeMs === changed && stat.size === size;
}

/** Modules that are loaded from now on come from the pack. */
export function usePack() {
  const pack = readPack();
  if (pack === null) return;
  const base = pathToFileURL(`${ROOT}/`).href;
  const sources = new Map(Object.entries(pack.sources));
  const isInstalled = pack.installed !== null && pack.installed === installedPackages();
  const packaged = new Set(isInstalled ? Object.keys(pack.packaged) : []);
  const packages = new Map(isInstalled ? Object.entries(pack.packages) : []);
  module.registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL;
      // A file that is required is looked for in other ways than one that is imported.
      if (!parent?.startsWith(base) || context.conditions.includes("require")) return next(specifier, context);
      if (specifier.startsWith(".")) {
        const path = joined(parent.slice(base.length), specifier);
        if (sources.has(path) || packaged.has(path)) return { url: base + path, format: "module", shortCircuit: true };
      } else {
        const found = parent.startsWith("node_modules/", base.length) ? undefined : packages.get(specifier);
        if (found) return { url: base + found[0], format: found[1], shortCircuit: true };
      }
      return next(specifier, context);
    },
    load(url, context, next) {
      if (!url.startsWith(base)) return next(url, context);
      const path = url.slice(base.length);
      const entry = sources.get(path);
      if (entry !== undefined) {
        if (isSame(entry, statSync(join(ROOT, path), { throwIfNoEntry: false })))
          return { format: "module", source: sourceOf(pack, entry), shortCircuit: true };
        return next(url, { ...context, format: "module-typescript" });
      }
      if (!packaged.has(path)) return next(url, context);
      return { format: "module", source: readFileSync(join(ROOT, path), "utf8"), shortCircuit: true };
    },
  });
}

function joined(parent, specifier) {
  const words = parent.split("/");
  words.pop();
  for (const word of specifier.split("/")) {
    if (word === "..") words.pop();
    else if (word !== ".") words.push(word);
  }
  return words.join("/");
}

function bytesAt(fd, offset, length) {
  const bytes = Buffer.allocUnsafe(length);
  let read = 0;
  while (read < length) {
    const more = readSync(fd, bytes, read, length - read, offset + read);
    if (more === 0) throw new Error("the pack ends early");
    read += more;
  }
  return bytes.utf8Slice(0, length);
}
