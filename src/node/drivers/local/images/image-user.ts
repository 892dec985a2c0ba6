/**
 * Resolves an image's `USER` with the image's own account files when it is loaded, so that an unknown name is reported
 * when loading and not when running. The layers are untrusted: no link in them is followed.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ImageUser } from "../../../capabilities/images.ts";
import { ID_COUNT } from "../workload/launch-program.ts";

/** Largest account file; a real one has a few kilobytes. */
const FILE_BYTES_MAX = 1024 * 1024;

/** `layers` are folders, topmost first. Returns undefined for root. Throws a sentence about the problem. */
export function imageUser(spec: string, layers: readonly string[]): ImageUser | undefined {
  const [name = "", group] = spec.trim().split(":", 2);
  if (name === "") return undefined;
  const accounts = rowsOf(layers, "passwd");
  const account = accounts.find(([known, , uid]) => (isId(name) ? Number(uid) === Number(name) : known === name));
  if (!account && !isId(name)) throw new Error(`its USER '${name.slice(0, 100)}' is not in its /etc/passwd`);
  const uid = Number(account?.[2] ?? name);
  const gid = group ? groupOf(group, layers) : Number(account?.[3] ?? 0);
  for (const id of [uid, gid])
    if (!(id >= 0 && id < ID_COUNT))
      throw new Error(`its USER '${spec.slice(0, 100)}' has an id above ${ID_COUNT - 1}`);
  return uid === 0 && gid === 0 ? undefined : { uid, gid, home: account?.[5] || "/" };
}

function groupOf(group: string, layers: readonly string[]): number {
  if (isId(group)) return Number(group);
  const found = rowsOf(layers, "group").find(([name]) => name === group);
  if (!found) throw new Error(`the group '${group.slice(0, 100)}' of its USER is not in its /etc/group`);
  return Number(found[2]);
}

const isId = (word: string): boolean => /^\d{1,10}$/.test(word);

const rowsOf = (layers: readonly string[], file: string): string[][] =>
  read(layers, file)
    .split("\n")
    .map((line) => line.split(":"));

/** The file from the topmost layer that has it; empty when no layer has it, or a layer removed it. */
function read(layers: readonly string[], file: string): string {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
  for (const layer of layers) {
    const opened: number[] = [];
    try {
      opened.push(openSync(join(layer, "etc"), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      opened.push(openSync(`/proc/self/fd/${opened[0]}/${file}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
      const stats = fstatSync(opened[1] ?? -1);
      return stats.isFile() && stats.size <= FILE_BYTES_MAX ? readFileSync(opened[1] ?? -1, "utf8") : "";
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") return ""; // a link, or a whiteout
    } finally {
      for (const fd of opened) closeSync(fd);
    }
  }
  return "";
}
