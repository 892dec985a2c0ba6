/** Unpacks the tar of a folder that a backup holds, in a root of its own: nothing outside of the target changes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import type { Machine } from "../machine/machine.ts";
import type { RootPart } from "../workload/launch-program.ts";
import { CommandFailed, runConfined } from "./confined-command.ts";
import { TOOL_ENV } from "./loop-image.ts";

/** `archive` is a file, and `to` an empty folder. */
export type UnpackTree = (archive: string, to: string) => Promise<void>;

const TARGET = "/target";
const SAID_MAX = 500;
/** Owners, times, extended attributes, holes and whiteouts come back; a name that leads out of the target is refused. */
const UNPACK = ["-x", "-p", "--numeric-owner", "--same-owner", "--xattrs", "--xattrs-include=*"];

/** `parts`: a root with the machine's programs. Without isolation `tar` itself is the only boundary. */
export const treeUnpacker =
  (machine: Machine, parts: RootPart[]): UnpackTree =>
  async (archive, to) => {
    if (machine.grade === "none") return unpackPlain(archive, to);
    await runConfined(machine, parts, {
      title: "The unpacking of a backup",
      script: `exec tar ${UNPACK.map((word) => `'${word}'`).join(" ")} -C ${TARGET}`,
      mounts: [{ base: to, path: TARGET, readOnly: false }],
      stdin: archive,
    });
  };

async function unpackPlain(archive: string, to: string): Promise<void> {
  const input = openSync(archive, "r");
  const child = spawn("tar", [...UNPACK, "-C", to], { env: TOOL_ENV, stdio: [input, "ignore", "pipe"] });
  closeSync(input);
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString("utf8")).slice(-SAID_MAX);
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new CommandFailed(said);
}
