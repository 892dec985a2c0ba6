/**
 * The dynamic loader and C library that the platform puts below every image, for its own daemon. An image hides these
 * files with its own. A build sees them in its root: a link such as `/lib` of Debian may take the place of their folder.
 */
import { lstatSync } from "node:fs";
import { type BytePath, baseName, joinPath, toBytes } from "../files/byte-path.ts";
import { entriesOf } from "./matching.ts";

const FOLDERS: ReadonlySet<string> = new Set(["/lib", "/lib64"]);
const FILE = /^(?:ld-linux-[\w-]+|libc|libm|libpthread|libdl)\.so\.\d+$/;

/** Whether the folder holds nothing but the platform's loader. */
export const isLoaderFolder = (path: BytePath): boolean => FOLDERS.has(path) && holdsLoaderOnly(path);

const holdsLoaderOnly = (folder: BytePath): boolean =>
  entriesOf(folder)
    .map((name) => joinPath(folder, name))
    .every((path) => (lstatSync(toBytes(path)).isDirectory() ? holdsLoaderOnly(path) : FILE.test(baseName(path))));
