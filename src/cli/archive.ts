/** Makes the archive of a code folder that is uploaded. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { ignoreRules } from "../dockerfile/ignore.ts";
import { TAR_END, tarHead, tarPadding } from "../lib/tar-entry.ts";
import { UsageError } from "../lib/usage-error.ts";

const IGNORE_FILES = [".berthignore", ".serviceignore"];
const IGNORED = [
  ".berth",
  ".service",
  ".env",
  ".docker",
  ".git",
  "dist",
  ".venv",
  "venv",
  "node_modules",
  ".packages",
  ".next",
  "__pycache__",
];
const DOCKERFILE = "Dockerfile";
/** Of a project with a Dockerfile, which may need what others leave out: its own resources, secrets and history. */
const NEVER_SENT = [".berth", ".service", ".env", ".git"];
/** Largest project: the archive is made in memory. Larger data belongs in a volume or an image. */
const PROJECT_BYTES_MAX = 256 * 1024 * 1024;

/** A gzipped tar of everything that is not ignored, without links. */
export function archiveOf(dir: string): Buffer {
  if (isFile(join(dir, DOCKERFILE)) && ignoreFileIn(dir) === undefined) return contextOf(dir, DOCKERFILE, NEVER_SENT);
  const ignored = new Set(ignoredIn(dir));
  return archiveWithout(dir, (path, name) => ignored.has(name) || ignored.has(path));
}

/** The context of an image build: `.dockerignore` alone says what is left out. */
export function contextOf(dir: string, dockerfile: string, neverSent: readonly string[] = []): Buffer {
  const files = [`${dockerfile}.dockerignore`, ".dockerignore"].map((name) => join(dir, name));
  const file = files.find(isFile);
  const ignores = ignoreRules(file === undefined ? "" : readFileSync(file, "utf8"));
  const kept = new Set([dockerfile, ".dockerignore", `${dockerfile}.dockerignore`]);
  // A folder that is ignored may hold exceptions, so only files are left out.
  return archiveWithout(
    dir,
    (path, _name, isFolder) => neverSent.includes(path) || (!isFolder && !kept.has(path) && ignores(path)),
  );
}

function archiveWithout(dir: string, isLeftOut: (path: string, name: string, isFolder: boolean) => boolean): Buffer {
  const blocks: Buffer[] = [];
  let bytes = 0;
  const walk = (below: string): void => {
    for (const entry of readdirSync(join(dir, below), { withFileTypes: true })) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (isLeftOut(path, entry.name, entry.isDirectory())) continue;
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile()) {
        const content = readFileSync(join(dir, path));
        bytes += content.length;
        if (bytes > PROJECT_BYTES_MAX)
          throw new UsageError(
            `${dir} holds more than ${PROJECT_BYTES_MAX / 1024 / 1024} MB.`,
            "leave out what is not needed with .berthignore (of an image build: .dockerignore), one path per line",
          );
        const executable = (statSync(join(dir, path)).mode & 0o111) !== 0;
        blocks.push(...tarHead(path, content.length, executable ? 0o755 : 0o644), content, tarPadding(content.length));
      }
    }
  };
  walk("");
  return gzipSync(Buffer.concat([...blocks, TAR_END]));
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

const ignoreFileIn = (dir: string): string | undefined => IGNORE_FILES.map((name) => join(dir, name)).find(isFile);

/** A project's own ignore file replaces the default list. */
function ignoredIn(dir: string): string[] {
  const file = ignoreFileIn(dir);
  if (file === undefined) return IGNORED;
  const lines = readFileSync(file, "utf8").split("\n");
  return lines
    .map((line) => line.trim().replace(/^\.?\/|\/$/g, ""))
    .filter((line) => line !== "" && !line.startsWith("#"));
}
