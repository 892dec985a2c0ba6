/** Files that a person dropped or picked, with the paths inside the folder that they came in. */
import type { ZipFile } from "./zip.ts";

/** Folders that a build makes by itself; they would only make the archive large. */
const LEFT_OUT = new Set(["node_modules", ".git", "__pycache__", ".venv"]);

/** The first word of a path is the folder itself. */
export function pathsOf(files: readonly { path: string; file: File }[]): { path: string; file: File }[] {
  return files
    .map(({ path, file }) => ({ path: path.split("/").slice(1).join("/") || file.name, file }))
    .filter(({ path }) => !path.split("/").some((word) => LEFT_OUT.has(word)));
}

export const readAll = (files: readonly { path: string; file: File }[]): Promise<ZipFile[]> =>
  Promise.all(files.map(async ({ path, file }) => ({ path, bytes: new Uint8Array(await file.arrayBuffer()) })));
