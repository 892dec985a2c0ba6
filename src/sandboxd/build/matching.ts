/** The files that patterns of COPY and ADD mean. */
import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { hasPattern, pathPattern } from "../../lib/path-pattern.ts";
import { type BytePath, fromBytes, fromText, joinPath, toBytes, toText } from "../files/byte-path.ts";

/** In the order of the patterns, then by name. Throws when a pattern means nothing. */
export function findSources(root: BytePath, patterns: readonly string[]): BytePath[] {
  return patterns.flatMap((pattern) => {
    const names = pattern.split("/").filter((name) => name !== "");
    const found = match(root, root, names);
    if (found.length === 0) throw new Error(`'${pattern}' is not there`);
    return found;
  });
}

function match(root: BytePath, folder: BytePath, [name, ...rest]: string[]): BytePath[] {
  if (name === undefined) return [folder];
  if (!hasPattern(name)) {
    const path = below(root, joinPath(folder, fromText(name)));
    return path === null ? [] : match(root, path, rest);
  }
  const pattern = pathPattern(name);
  if (pattern === null) throw new Error(`'${name}' is not a pattern`);
  return entriesOf(folder)
    .filter((entry) => pattern.test(toText(entry)))
    .sort()
    .flatMap((entry) => {
      const path = below(root, joinPath(folder, entry));
      return path === null ? [] : match(root, path, rest);
    });
}

/** The path without links; null when nothing is there, or a link leads out of the root. */
function below(root: BytePath, path: BytePath): BytePath | null {
  if (!lstatSync(toBytes(path), { throwIfNoEntry: false })?.isSymbolicLink()) return exists(path) ? path : null;
  try {
    const real = fromBytes(realpathSync(toBytes(path), { encoding: "buffer" }));
    return root === "/" || real === root || real.startsWith(`${root}/`) ? real : null;
  } catch {
    return null;
  }
}

const exists = (path: BytePath): boolean => lstatSync(toBytes(path), { throwIfNoEntry: false }) !== undefined;

export function entriesOf(folder: BytePath): BytePath[] {
  try {
    return readdirSync(toBytes(folder), { encoding: "buffer" }).map(fromBytes);
  } catch {
    return [];
  }
}
