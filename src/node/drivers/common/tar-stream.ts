/** Folders of this machine as a stream of a tar, made by the machine's own `tar`. */
import { spawn } from "node:child_process";
import { PassThrough, type Readable } from "node:stream";

/** Arguments of `tar` after `-c`; owners are numbers. */
export function tarStream(args: readonly string[]): Readable {
  const child = spawn("tar", ["-c", "--numeric-owner", ...args], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const out = new PassThrough();
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString("utf8")).slice(-SAID_MAX);
  });
  child.once("error", (error) => out.destroy(error));
  child.stdout.pipe(out, { end: false });
  // 1: a file changed while it was read, which is no reason to refuse all others.
  child.once("close", (code) => (code === 0 || code === 1 ? out.end() : out.destroy(new Error(`tar: ${said}`))));
  out.once("close", () => child.kill("SIGKILL"));
  return out;
}

const SAID_MAX = 500;
