/**
 * The system calls that start a workload in gVisor. The steps are those of grade `mapped` (`launch-program.ts`) up to
 * the workload's files; then the first process becomes `runsc`, which starts the guest kernel (sentry) and its file
 * server (gofer) as the workload's unprivileged user. All of them are in the workload's pid namespace and control
 * groups, so the driver ends, freezes and measures such a workload like any other.
 */
import { type Program, REPORT_FD } from "../calls/program.ts";
import { READY_FD } from "../calls/spawner.ts";
import {
  AT_FDCWD,
  CLONE,
  MNT_DETACH,
  MOVE_MOUNT_F_EMPTY_PATH,
  MS,
  O_CLOEXEC,
  OPEN_TREE_CLONE,
  RLIMIT,
} from "../calls/syscalls.ts";
import {
  actAsMapped,
  bringUpLoopback,
  joinControlGroups,
  mountParts,
  openMount,
  stage,
  startFirst,
  takeTrees,
} from "../workload/launch-program.ts";
import { bundleDir, memoryDir, type VmPlan, WHOLE } from "./bundle.ts";
import { runscArguments, type VmNetwork } from "./runsc.ts";
import { mountDir, STAGE } from "./vm-stage.ts";

export interface Vm {
  /** Path of runsc. */
  executable: string;
  /** Name of the workload among those of this machine. */
  id: string;
  network: VmNetwork;
  /** Whether the workload starts anew, or from its memory on disk. */
  mode: "run" | "restore";
}

/** Pid of the next process in the workload's pid namespace. */
const HELPER_PID = 2;
/** Others than root may pass, not look around: the sentry's user reaches what runsc names to it. */
const STAGE_MODE = 711;

export function vmSteps(program: Program, plan: VmPlan, { executable, id, network, mode }: Vm): void {
  program.step("umask", [0], "umask");
  startFirst(program, plan);
  joinControlGroups(program, plan);
  const { NEWNS, NEWIPC, NEWUTS, NEWNET } = CLONE;
  program.step("unshare", [NEWNS | NEWIPC | NEWUTS | NEWNET], "make namespaces");
  program.step("mount", [0, "/", 0, MS.REC | MS.PRIVATE, 0], "detach from the host's mounts");
  const userns = stage(program, plan, `${plan.dir}/mnt`, HELPER_PID, STAGE_MODE);
  for (const path of FOLDERS) program.step("mkdirat", [AT_FDCWD, path, 0o755], `make ${path}`);
  placeTrees(program, plan, userns);
  placeOwn(program, executable, STAGE.runsc);
  placeOwn(program, bundleDir(plan.dir), STAGE.bundle);
  placeOwn(program, memoryDir(plan.dir), STAGE.memory);
  program.step("mknodat", [AT_FDCWD, "dev/null", 0o020666, (1 << 8) | 3], "make /dev/null");
  actAsMapped(program, plan.identity);
  mountParts(program, plan, userns);
  // A link that an earlier run of the workload put there leads to another folder of its root, never out of it.
  place(program, openMount(program, { base: "r", below: "tmp", path: "/tmp", readOnly: false }, null), STAGE.temp);
  program.step("setfsuid", [0], "act as the machine's root");
  program.step("setfsgid", [0], "act as the machine's root");
  leaveMachine(program);
  bringUpLoopback(program);
  program.step("prlimit64", [0, RLIMIT.CORE, program.words([1, 1]), 0], "forbid core dumps");
  program.step("umask", [0o022], "umask");
  program.step("close_range", [3, REPORT_FD, 4], "hide descriptors");
  program.step("close_range", [READY_FD + 1, 0xffffffff, 4], "hide descriptors");
  const own = { run: `--pass-fd=${READY_FD}:${READY_FD}`, restore: `--image-path=${STAGE.memory}/${WHOLE}` };
  const command = [mode, `--bundle=${STAGE.bundle}`, own[mode], id];
  const argv = program.texts(runscArguments(network, command));
  program.step("execve", [STAGE.runsc, argv, program.texts(ENVIRONMENT)], "start runsc");
}

/** On the stage, beside those of its own (`stage`). runsc mounts the root of the sentry at /tmp. */
const FOLDERS = ["proc", "dev", "tmp", "s", "b", "memory", "t"];

const ENVIRONMENT = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"];

/** The first tree is /proc, for runsc itself; the guest has its own. */
function placeTrees(program: Program, plan: VmPlan, userns: number | null): void {
  const [proc, ...others] = takeTrees(program, plan, userns);
  if (proc) place(program, proc.fd, proc.path);
  // runsc takes a namespace with these files for the machine's own, and refuses to take over its interfaces.
  program.step("mount", ["tmpfs", "proc/sys/net/core", "tmpfs", MS.NOSUID, "size=0k"], "hide network settings");
  others.forEach(({ fd }, index) => {
    program.step("mkdirat", [AT_FDCWD, onStage(mountDir(index)), 0o755], "make a mount point");
    place(program, fd, mountDir(index));
  });
}

/** A file or folder of the machine that runsc needs. */
function placeOwn(program: Program, source: string, path: string): void {
  const fd = program.open("open_tree", [AT_FDCWD, source, OPEN_TREE_CLONE | O_CLOEXEC], `open ${source}`);
  // An empty file to mount on; a folder is there already.
  program.step("mknodat", [AT_FDCWD, onStage(path), 0o100755, 0], `make ${path}`, { onError: "ignore" });
  place(program, fd, path);
}

function place(program: Program, fd: number, path: string): void {
  const to = onStage(path);
  program.step("move_mount", [fd, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH], `mount ${path}`);
  program.close(fd);
}

/** Before the stage is the root, it is the working folder. */
const onStage = (path: string): string => path.slice(1);

/** Makes the stage the root. A mount of the machine that stayed would be busy for as long as the workload lives. */
function leaveMachine(program: Program): void {
  program.step("pivot_root", [".", "."], "change the root");
  program.step("umount2", [".", MNT_DETACH], "let go of the old root");
  program.step("chdir", ["/"], "enter the new root");
}
