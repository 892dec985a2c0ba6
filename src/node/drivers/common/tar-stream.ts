/** Folders of this machine as a stream of a tar, made by the machine's own `tar`. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { PassThrough, type Readable } from "node:stream";

/** `onLine` gets each line that `tar` says of a file. */
type OnLine = (line: string) => void;

/** Arguments of `tar` after `-c`; owners are numbers. */
export const tarStream = (args: readonly string[], onLine?: OnLine): Readable =>
  streamOf("tar", ["-c", "--numeric-owner", ...args], onLine);

/**
 * Files, folders and links of a folder that a workload wrote, for somebody who may unpack them as root: without devices
 * (everybody can make the device 0:0), pipes and sockets, without set-id bits, and without extended attributes. The
 * folder that ext4 keeps for itself is left out, too.
 */
const PLAIN = `cd "$1" || exit 2
find . -path ./lost+found -prune -o '(' -type f -o -type d -o -type l ')' -print0 |
  exec tar -c --numeric-owner --mode=ug-s --no-xattrs --no-recursion --null -T -`;

export const plainTarStream = (folder: string): Readable => streamOf("sh", ["-c", PLAIN, "sh", folder]);

function streamOf(program: string, args: readonly string[], onLine?: OnLine): Readable {
  const child = spawn(program, args, {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const out = new PassThrough();
  if (onLine) createInterface({ input: child.stderr }).on("line", onLine);
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString("utf8")).slice(-SAID_MAX);
  });
  child.once("error", (error) => out.destroy(error));
  child.stdout.pipe(out, { end: false });
  // 1: a file changed while it was read, which is no reason to refuse all others.
  child.once("close", (code) => (code === 0 || code === 1 ? out.end() : out.destroy(new Error(`tar: ${said}`))));
  out.once("close", () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) endGroup(child.pid);
  });
  return out;
}

/** The shell and what it started. */
function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

const SAID_MAX = 500;
