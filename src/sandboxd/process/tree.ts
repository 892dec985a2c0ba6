/** Reads processes from /proc. */
import { readdirSync, readFileSync } from "node:fs";

export interface ProcStat {
  pid: number;
  name: string;
  state: string;
  parent: number;
  session: number;
  startTicks: string;
}

/** Null when the process does not exist. */
export function statOf(pid: number): ProcStat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null;
  }
  // The name is in parentheses and may itself contain parentheses and spaces.
  const open = text.indexOf("(");
  const close = text.lastIndexOf(")");
  const rest = text.slice(close + 2).split(" ");
  return {
    pid,
    name: Buffer.from(text.slice(open + 1, close), "latin1").toString("utf8"),
    state: rest[0] ?? "?",
    parent: Number(rest[1]),
    session: Number(rest[3]),
    startTicks: rest[19] ?? "0",
  };
}

export const isAlive = (pid: number, startTicks: string): boolean => {
  const stat = statOf(pid);
  return stat !== null && stat.startTicks === startTicks && stat.state !== "Z" && stat.state !== "X";
};

/** A process, its descendants, and all other processes of the session it leads. */
export function familyOf(pid: number): Map<number, ProcStat> {
  const all = new Map<number, ProcStat>();
  for (const entry of readdirSync("/proc")) {
    const stat = /^\d+$/.test(entry) ? statOf(Number(entry)) : null;
    if (stat) all.set(stat.pid, stat);
  }
  const belongs = (stat: ProcStat): boolean => {
    const seen = new Set<number>();
    for (let at: ProcStat | undefined = stat; at && !seen.has(at.pid); at = all.get(at.parent)) {
      if (at.pid === pid || at.session === pid) return true;
      seen.add(at.pid);
    }
    return false;
  };
  return new Map([...all].filter(([, stat]) => belongs(stat)));
}
