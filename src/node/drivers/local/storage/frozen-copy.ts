/**
 * Copies an image while its file system is frozen: all that was written is in the file, and nothing is written
 * meanwhile. Blocks are shared where the file system below can, holes stay holes elsewhere.
 *
 * One process freezes, copies and thaws, so that a server which is killed in between leaves no frozen file system. The
 * process ignores the signals that end a server, and thaws by the descriptor that it froze, whatever its path names
 * meanwhile.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { TOOL_ENV } from "./loop-image.ts";

const COPY = 'cp --reflink=auto --sparse=always -- "$1" "$2"';
const FROZEN = `trap '' HUP INT TERM
exec 9<"$3" || exit 1
fsfreeze --freeze /proc/self/fd/9 || exit 1
${COPY}
code=$?
fsfreeze --unfreeze /proc/self/fd/9
exit "$code"`;
const SAID_MAX = 500;

/** Copies the image of the file system that is mounted at `mount`. */
export const copyFrozen = (image: string, to: string, mount: string): Promise<void> => shell(FROZEN, image, to, mount);

/** Copies an image that is not mounted anywhere, or mounted read-only. */
export const copyStill = (image: string, to: string): Promise<void> => shell(COPY, image, to);

/** Without a time limit: a large image on a slow disk takes its time. */
async function shell(script: string, ...args: string[]): Promise<void> {
  const child = spawn("sh", ["-c", script, "sh", ...args], {
    env: TOOL_ENV,
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString("utf8")).slice(-SAID_MAX);
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`An image could not be copied: ${said.trim()}`);
}
