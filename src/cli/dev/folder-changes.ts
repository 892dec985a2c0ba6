/**
 * Tells when files of a code folder change; several changes of one moment, as an editor or git makes them, are told once.
 * Every folder has a watcher of its own: a recursive one of Node loses a file once another was renamed over it.
 */
import { type FSWatcher, lstatSync, readdirSync, type Stats, watch } from "node:fs";
import { basename, join, sep } from "node:path";

export interface FolderWatcher {
  close(): void;
}

/** Wait after the last change: an editor replaces a file in several steps. */
const QUIET_MS = 100;
/** Folders that the program, a package manager or version control writes, at any depth; those with a dot are none either. */
const NOT_WATCHED = new Set(["node_modules", "__pycache__", "venv", "dist"]);
/** Files that editors keep beside the one that is open. */
const OF_EDITORS = /^\.#|~$|\.sw[a-z]$/;
/** Every folder takes one of the user's inotify watches, of which old kernels give 8192. Folders beyond are not watched. */
const FOLDERS_MAX = 4096;

export function watchFolder(root: string, changed: (path: string) => void): FolderWatcher {
  const watchers = new Map<string, FSWatcher>();
  const files = new Map<string, string>();
  const touched = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  const touch = (path: string): void => {
    touched.add(path);
    clearTimeout(timer);
    timer = setTimeout(tell, QUIET_MS);
  };

  function tell(): void {
    const paths = [...touched];
    touched.clear();
    const differing = paths.flatMap(look);
    if (differing[0] !== undefined) changed(differing[0]);
  }

  /** The paths, below the folder, of what differs from the last look. A file that came and went was never there. */
  function look(path: string): string[] {
    const found = statOf(join(root, path));
    if (found?.isDirectory() && isIgnoredFolder(basename(path))) return [];
    const known = [...files.keys()].filter((file) => isWithin(file, path));
    closeWithin(path); // the watcher of a folder that was replaced tells nothing any more
    const now = found === undefined ? [] : found.isDirectory() ? add(path) : note(path, found);
    const gone = known.filter((file) => statOf(join(root, file)) === undefined);
    for (const file of gone) files.delete(file);
    return [...now, ...gone];
  }

  /** Watches the folder and those below before it reads their files, so that no file comes between the two. */
  function add(folder: string): string[] {
    if (watchers.size >= FOLDERS_MAX) return [];
    const path = join(root, folder);
    try {
      const watcher = watch(path, (_event, name) => touch(name === null ? folder : join(folder, name)));
      watcher.on("error", () => watcher.close()); // the folder has gone
      watchers.set(folder, watcher);
      return readdirSync(path).flatMap((name) => {
        const found = statOf(join(path, name));
        if (found?.isDirectory()) return isIgnoredFolder(name) ? [] : add(join(folder, name));
        return found === undefined ? [] : note(join(folder, name), found);
      });
    } catch (error) {
      if (isGone(error)) return [];
      throw error;
    }
  }

  function note(path: string, { ino, size, mtimeMs }: Stats): string[] {
    if (OF_EDITORS.test(basename(path))) return [];
    const signature = `${ino} ${size} ${mtimeMs}`;
    if (files.get(path) === signature) return [];
    files.set(path, signature);
    return [path];
  }

  function closeWithin(folder: string): void {
    for (const [path, watcher] of watchers) {
      if (!isWithin(path, folder)) continue;
      watcher.close();
      watchers.delete(path);
    }
  }

  add("");
  return {
    close() {
      clearTimeout(timer);
      closeWithin("");
    },
  };
}

const isWithin = (path: string, folder: string): boolean =>
  folder === "" || path === folder || path.startsWith(folder + sep);
const isIgnoredFolder = (name: string): boolean => name.startsWith(".") || NOT_WATCHED.has(name);
const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });
const isGone = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
