/**
 * Resolves an image's `USER` with the image's own account files, so that an unknown name is told before a process
 * starts.
 */
import type { ImageUser } from "../../capabilities/images.ts";

/** Ids of a workload; see the range of ids that the local driver maps. */
const ID_COUNT = 65_536;

/** Reads /etc/passwd or /etc/group of the image; empty where the image has none. */
export type AccountFile = (name: "passwd" | "group") => string;

/** Returns undefined for root. Throws a sentence about the problem. */
export function imageUser(spec: string, read: AccountFile): ImageUser | undefined {
  const [name = "", group] = spec.trim().split(":", 2);
  if (name === "") return undefined;
  const accounts = rowsOf(read("passwd"));
  const account = accounts.find(([known, , uid]) => (isId(name) ? Number(uid) === Number(name) : known === name));
  if (!account && !isId(name)) throw new Error(`its USER '${name.slice(0, 100)}' is not in its /etc/passwd`);
  const uid = Number(account?.[2] ?? name);
  const gid = group ? groupOf(group, read) : Number(account?.[3] ?? 0);
  for (const id of [uid, gid])
    if (!(id >= 0 && id < ID_COUNT))
      throw new Error(`its USER '${spec.slice(0, 100)}' has an id above ${ID_COUNT - 1}`);
  return uid === 0 && gid === 0 ? undefined : { uid, gid, home: account?.[5] || "/" };
}

function groupOf(group: string, read: AccountFile): number {
  if (isId(group)) return Number(group);
  const found = rowsOf(read("group")).find(([name]) => name === group);
  if (!found) throw new Error(`the group '${group.slice(0, 100)}' of its USER is not in its /etc/group`);
  return Number(found[2]);
}

const isId = (word: string): boolean => /^\d{1,10}$/.test(word);

const rowsOf = (text: string): string[][] => text.split("\n").map((line) => line.split(":"));
