/**
 * The resources of a command without a daemon. A slot (a folder, control groups, a range of ids) is reused for the next
 * command, since making it costs as much as all the rest. Everything else is made anew.
 */
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { EGRESS_DOOR_PORT, type Limits, PIDS_DEFAULT, PLATFORM_DOOR_PORT } from "../../../workload.ts";
import { type Cgroup, createCgroup, setCgroupLimits } from "../machine/cgroup.ts";
import { CAPABILITIES_MAPPED, idBaseOf, identityFor, type Machine } from "../machine/machine.ts";
import type { Nat } from "../network/nat.ts";
import { RESERVED_MB } from "../workload/launch.ts";
import type { Order } from "../workload/order.ts";
import { TASK_GROUPS } from "./task-lives.ts";
import { TASK_FILES, type TaskPlan, type TaskProgram } from "./task-program.ts";
import { TASK_TAG } from "./task-report.ts";

export interface TaskSlot {
  number: number;
  dir: string;
  idBase: number | null;
  cgroup: Cgroup;
  /** Limits set on the control groups; null when unknown, so that the next command sets them again. */
  limits: Limits | null;
  /** OOM kills counted by its control group so far. */
  oomKills: number;
  /** The program of the last command, reused when the next one has the same key. */
  program: { key: string; program: TaskProgram } | null;
}

export interface TaskGround {
  machine: Machine;
  nat: Nat | null;
  /** Folder of this run of the server. */
  dir: string;
}

export const DOOR_SOCKET = "door.sock";
/** File with the end times of all commands. */
export const ENDS_FILE = "ends";
const STAGE = "stage";

export function makeTaskSlot(machine: Machine, lifeDir: string, number: number, limits: Limits): TaskSlot {
  const dir = join(lifeDir, String(number));
  for (const each of [join(lifeDir, STAGE), dir]) mkdirSync(each, { recursive: true, mode: 0o700 });
  const idBase = idBaseOf(machine, number);
  for (const name of [TASK_FILES.stdout, TASK_FILES.stderr]) {
    writeFileSync(join(dir, name), "", { mode: 0o600 });
    // The command may reopen its own output as /dev/stdout, so it owns the files.
    if (idBase !== null) chownSync(join(dir, name), idBase, idBase);
  }
  const cgroup = createCgroup(machine.cgroups, `${TASK_GROUPS}${number}`);
  const slot: TaskSlot = { number, dir, idBase, cgroup, limits: null, oomKills: 0, program: null };
  setSlotLimits(slot, limits);
  return slot;
}

export function setSlotLimits(slot: TaskSlot, limits: Limits): void {
  if (isDeepStrictEqual(slot.limits, limits)) return;
  slot.limits = null; // a failure may leave only some limits set
  setCgroupLimits(slot.cgroup, limits);
  slot.limits = limits;
}

export function taskPlan({ machine, nat, dir }: TaskGround, { spec, parts, mounts }: Order, slot: TaskSlot): TaskPlan {
  const { limits } = machine.cgroups;
  const { version, paths } = slot.cgroup;
  const outbound = spec.network === "outbound";
  const oomFile = version === 2 ? `${paths.unified}/memory.events` : `${paths.memory}/memory.oom_control`;
  return {
    identity: identityFor(machine, slot.idBase),
    dir: slot.dir,
    stage: join(dir, STAGE),
    parts,
    shared: [],
    mounts,
    hostname: spec.name,
    cgroups: [],
    memoryMb: spec.limits.memoryMb,
    ...(limits.includes("memory") ? {} : { dataBytesMax: (spec.limits.memoryMb + RESERVED_MB) * 1024 * 1024 }),
    ...(limits.includes("pids") ? {} : { processesMax: spec.limits.pids ?? PIDS_DEFAULT }),
    capabilities: machine.grade === "contained" ? [] : CAPABILITIES_MAPPED,
    seccomp: machine.seccomp,
    ends: spec.exec?.endsAtMs === undefined ? null : { file: join(dir, ENDS_FILE), slot: slot.number },
    oomFile: limits.includes("memory") ? oomFile : null,
    doors: [
      { port: PLATFORM_DOOR_PORT, tag: TASK_TAG.platformDoor },
      ...(outbound ? [{ port: EGRESS_DOOR_PORT, tag: TASK_TAG.egressDoor }] : []),
    ],
    doorSocket: { dir, name: DOOR_SOCKET },
    waitForNetwork: outbound && nat !== null,
  };
}
