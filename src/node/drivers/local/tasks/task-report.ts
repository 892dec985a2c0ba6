/** Reports of tasks' processes over the one connection that they share. The tag of a record determines its length. */

/** Tags of eight bytes; the number of the task follows. */
export const TASK_TAG = {
  /** The pid of the watcher, whose network namespace needs an interface. */
  network: "NETWORK\0",
  /** Pids: watcher, init, command. */
  processes: "PROCESS\0",
  started: "STARTED\0",
  /** Carries no data; the write only succeeds while a server listens. */
  ending: "ENDING\0\0",
  /** Wait status, bytes of stdout and of stderr, whether its files are gone (0), the text that counts OOM kills. */
  ended: "ENDED\0\0\0",
  /** Result and number of the failed step, in the watcher (then nothing more follows) or in the command. */
  failure: "FAILURE\0",
  commandFailure: "FAILED-C",
  /** On the door socket: the first word of a connection, which names the door. */
  platformDoor: "PLATFORM",
  egressDoor: "EGRESS\0\0",
} as const;

/** Enough bytes of the file for every counter at its longest. */
export const OOM_TEXT_BYTES = 192;

export type TaskReport =
  | { kind: "network"; number: number; pid: number }
  | { kind: "processes"; number: number; watcher: number; init: number; command: number }
  | { kind: "started"; number: number }
  | { kind: "ending"; number: number }
  | { kind: "ended"; number: number; status: number; out: number; err: number; clean: boolean; oomKills: number }
  | { kind: "failure"; number: number; errno: number; step: number; ofCommand: boolean };

const BYTES: Record<string, number> = {
  [TASK_TAG.network]: 24,
  [TASK_TAG.processes]: 40,
  [TASK_TAG.started]: 16,
  [TASK_TAG.ending]: 16,
  [TASK_TAG.ended]: 48 + OOM_TEXT_BYTES,
  [TASK_TAG.failure]: 32,
  [TASK_TAG.commandFailure]: 32,
};

/** Parses all complete records and returns the remaining bytes. */
export function readTaskReports(bytes: Buffer): { reports: TaskReport[]; rest: Buffer } {
  const reports: TaskReport[] = [];
  let at = 0;
  while (at + 8 <= bytes.length) {
    const tag = bytes.toString("latin1", at, at + 8);
    const length = BYTES[tag];
    if (length === undefined) throw new Error("a task's process said something unknown");
    if (at + length > bytes.length) break;
    reports.push(parse(tag, bytes.subarray(at, at + length)));
    at += length;
  }
  return { reports, rest: bytes.subarray(at) };
}

function parse(tag: string, bytes: Buffer): TaskReport {
  const word = (index: number): number => Number(bytes.readBigInt64LE(index * 8));
  const number = word(1);
  switch (tag) {
    case TASK_TAG.network:
      return { kind: "network", number, pid: word(2) };
    case TASK_TAG.processes:
      return { kind: "processes", number, watcher: word(2), init: word(3), command: word(4) };
    case TASK_TAG.started:
      return { kind: "started", number };
    case TASK_TAG.ending:
      return { kind: "ending", number };
    case TASK_TAG.ended: {
      const oomKills = Number(/oom_kill (\d+)/.exec(bytes.toString("latin1", 48))?.[1] ?? 0);
      return { kind: "ended", number, status: word(2), out: word(3), err: word(4), clean: word(5) === 0, oomKills };
    }
    default:
      return { kind: "failure", number, errno: word(2), step: word(3), ofCommand: tag === TASK_TAG.commandFailure };
  }
}
