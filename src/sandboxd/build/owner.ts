/** `USER[:GROUP]` by name or number, with the image's own account files. */
import { readFileSync } from "node:fs";
import { userByName, userOf } from "../files/accounts.ts";

export interface Owner {
  uid: number;
  gid: number;
}

export function ownerFrom(text: string): Owner {
  const [user = "", group] = text.split(":", 2);
  const account = isId(user) ? userOf(Number(user)) : userByName(user);
  if (!account && !isId(user)) throw new Error(`the user '${user}' is not in /etc/passwd of the image`);
  const uid = account?.uid ?? Number(user);
  // Docker takes the number of the user for the group of `--chown=1000`.
  const gid = group !== undefined && group !== "" ? groupFrom(group) : isId(user) ? uid : (account?.gid ?? 0);
  return { uid, gid };
}

function groupFrom(group: string): number {
  if (isId(group)) return Number(group);
  const row = accountRows("/etc/group").find(([name]) => name === group);
  if (!row) throw new Error(`the group '${group}' is not in /etc/group of the image`);
  return Number(row[2]);
}

function accountRows(file: string): string[][] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.split(":"));
  } catch {
    return [];
  }
}

const isId = (word: string): boolean => /^\d{1,10}$/.test(word);
