/** Tells when files of a code folder change; several changes of one moment, as an editor or git makes them, are told once. */
import { type FSWatcher, watch } from "node:fs";
import { sep } from "node:path";

/** Wait after the last change: an editor replaces a file in several steps. */
const QUIET_MS = 100;
/** Folders that the program, a package manager or version control writes, at any depth. */
const NOT_WATCHED = new Set([
  ...[".git", "node_modules", ".packages", "__pycache__", ".venv", "venv"],
  ...["dist", ".next", ".mastra", ".pytest_cache", ".ruff_cache"],
]);

export function watchFolder(folder: string, changed: (path: string) => void): FSWatcher {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(folder, { recursive: true }, (_event, path) => {
    if (path === null || path.split(sep).some((part) => NOT_WATCHED.has(part))) return;
    clearTimeout(timer);
    timer = setTimeout(() => changed(path), QUIET_MS);
  });
  watcher.once("close", () => clearTimeout(timer));
  return watcher;
}
