/**
 * Files and variables of the machine. Browsers have neither. Modules of Node are loaded by a name that bundlers do not
 * follow, so that the SDK needs no settings for browsers.
 */

export interface Files {
  read(path: string): Promise<string | null>;
  /** Replaces a file at once, readable by its owner only. */
  replace(path: string, text: string): Promise<void>;
  /** Creates a file that names this process; false when the file is there already. */
  lock(path: string): Promise<boolean>;
  remove(path: string): Promise<void>;
  ageMs(path: string): Promise<number>;
}

interface Process {
  pid: number;
  env: Record<string, string | undefined>;
}

interface NodeFiles {
  readFile(path: string, encoding: "utf8"): Promise<string>;
  writeFile(path: string, text: string, options: { flag?: string; mode: number }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  rm(path: string, options: { force: boolean }): Promise<void>;
  stat(path: string): Promise<{ mtimeMs: number }>;
}

const NODE_FILES = "node:fs/promises";
const OWNER_ONLY = 0o600;

const processHere = (): Process | undefined => (globalThis as { process?: Process }).process;

/** Deno asks the user before a variable is read, and throws when the answer is no. */
export function variable(name: string): string | undefined {
  try {
    return processHere()?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}

/** Null where there are no files. */
export async function filesHere(): Promise<Files | null> {
  const here = processHere();
  if (!here?.pid) return null;
  const node: NodeFiles = await import(/* webpackIgnore: true */ /* @vite-ignore */ NODE_FILES);
  return {
    read: (path) => node.readFile(path, "utf8").catch(unlessCode("ENOENT", null)),
    async replace(path, text) {
      const next = `${path}.${here.pid}`;
      await node.writeFile(next, text, { mode: OWNER_ONLY });
      await node.rename(next, path);
    },
    lock: (path) =>
      node
        .writeFile(path, String(here.pid), { flag: "wx", mode: OWNER_ONLY })
        .then(() => true, unlessCode("EEXIST", false)),
    remove: (path) => node.rm(path, { force: true }),
    ageMs: (path) => node.stat(path).then(({ mtimeMs }) => Date.now() - mtimeMs, unlessCode("ENOENT", 0)),
  };
}

const unlessCode =
  <Value>(code: string, value: Value) =>
  (error: unknown): Value => {
    if (error instanceof Error && "code" in error && error.code === code) return value;
    throw error;
  };
