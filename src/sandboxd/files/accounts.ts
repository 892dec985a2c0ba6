/** User and group names of the sandbox's own /etc, re-read when they change: images and users edit them. */
import { readFileSync, statSync } from "node:fs";

export interface Account {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

interface Cached<T> {
  stamp: number;
  rows: T;
  /** The file is not checked for changes before this time: one listing looks up thousands of names. */
  freshUntilMs: number;
}

/** Bounds the cost of a hostile /etc/passwd. */
const FILE_BYTES_MAX = 1024 * 1024;
const FRESH_MS = 1000;

let users: Cached<Account[]> | null = null;
let groups: Cached<Map<number, string>> | null = null;

export const userName = (uid: number): string => userOf(uid)?.name ?? String(uid);
export const userOf = (uid: number): Account | undefined => allUsers().find((account) => account.uid === uid);
export const userByName = (name: string): Account | undefined => allUsers().find((account) => account.name === name);

export function groupName(gid: number): string {
  groups = refreshed("/etc/group", groups, (rows) => {
    const names = new Map<number, string>();
    for (const [name, , id] of rows) if (name && !names.has(Number(id))) names.set(Number(id), name);
    return names;
  });
  return groups.rows.get(gid) ?? String(gid);
}

function allUsers(): Account[] {
  users = refreshed("/etc/passwd", users, (rows) =>
    rows.map(([name = "", , uid, gid, , home]) => ({ name, uid: Number(uid), gid: Number(gid), home: home || "/" })),
  );
  return users.rows;
}

function refreshed<T>(file: string, cached: Cached<T> | null, parse: (rows: string[][]) => T): Cached<T> {
  const nowMs = Date.now();
  if (cached && nowMs < cached.freshUntilMs) return cached;
  const freshUntilMs = nowMs + FRESH_MS;
  const stats = statSync(file, { throwIfNoEntry: false });
  const readable = stats?.isFile() === true && stats.size <= FILE_BYTES_MAX;
  const stamp = readable ? stats.mtimeMs : -1;
  if (cached?.stamp === stamp) return { ...cached, freshUntilMs };
  const rows = readable ? readFileSync(file, "utf8").split("\n") : [];
  return { stamp, freshUntilMs, rows: parse(rows.filter((row) => row.includes(":")).map((row) => row.split(":"))) };
}
