/** System calls that change a running workload from outside: its host name, its shared memory and its mounts. */

import type { Program } from "../calls/program.ts";
import { AT_FDCWD, CLONE, MNT_DETACH, MOVE_MOUNT_F_EMPTY_PATH, O_CLOEXEC, O_PATH, RESOLVE } from "../calls/syscalls.ts";
import {
  actAsMapped,
  type HostMount,
  type Identity,
  makePath,
  openMount,
  resizeSharedMemory,
} from "./launch-program.ts";

export interface EnterPlan {
  /** Host pid of the workload's first process. */
  pid: number;
  identity: Identity;
  hostname?: string;
  /** The memory limit, when it differs from the one at launch. */
  memoryMb?: number;
  mounts?: HostMount[];
  /** The current mount point from /proc/PID/mountinfo; the workload is frozen meanwhile. */
  unmount?: string;
}

/**
 * Opens the sources while the host's files are visible, then moves into the workload's namespaces and root, so that
 * links in the path of the mount point cannot lead outside.
 */
export function enterSteps(program: Program, plan: EnterPlan): void {
  program.step("umask", [0], "umask");
  const open = (kind: string): number =>
    program.open("openat", [AT_FDCWD, `/proc/${plan.pid}/ns/${kind}`, O_CLOEXEC, 0], `open the ${kind} namespace`);
  const [user, uts, mnt] = [open("user"), open("uts"), open("mnt")];
  if (plan.identity.kind === "user") {
    // An unprivileged server may change its workload only from within the workload's user namespace. A copy of the
    // host's mounts that belongs to that namespace makes the sources mountable.
    program.step("setns", [user, CLONE.NEWUSER], "enter the user namespace");
    program.step("unshare", [CLONE.NEWNS], "copy the host's mounts");
  }
  if (plan.hostname !== undefined) {
    program.step("setns", [uts, CLONE.NEWUTS], "enter the uts namespace");
    program.step("sethostname", [plan.hostname, Buffer.byteLength(plan.hostname)], "set the host name");
  }
  const mounts = plan.mounts ?? [];
  const userns = plan.identity.kind === "mapped" ? user : null;
  const trees = mounts.map((mount) => openMount(program, mount, userns));
  if (mounts.length > 0 || plan.unmount !== undefined || plan.memoryMb !== undefined) {
    program.step("setns", [mnt, CLONE.NEWNS], "enter the mount namespace");
    if (plan.memoryMb !== undefined) resizeSharedMemory(program, plan.memoryMb);
    if (plan.identity.kind === "mapped") actAsMapped(program, plan.identity);
  }
  mounts.forEach(({ path }, index) => {
    makePath(program, path);
    program.step("move_mount", [trees[index] ?? -1, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH], `mount ${path}`);
  });
  if (plan.unmount !== undefined) {
    // By descriptor: a link in the path must not lead to the unmounting of a mount that protects the host.
    const how = program.words([O_PATH | O_CLOEXEC, 0, RESOLVE.NO_SYMLINKS]);
    const at = program.open("openat2", [AT_FDCWD, plan.unmount, how, 24], `open ${plan.unmount}`);
    program.step("fchdir", [at], `enter ${plan.unmount}`);
    program.step("umount2", [".", MNT_DETACH], `unmount ${plan.unmount}`);
  }
}
