/**
 * The system calls that turn a process into the first process of a workload. Two processes take part:
 *
 *   watcher  stays outside; writes the pid of the other to a file, waits for it, and writes its wait status to a file,
 *            so that an exit is known even when no server was running
 *   first    becomes PID 1 of its own pid namespace and, in the end, sandboxd's init
 *
 * Namespaces and mounts are made before the user namespace is entered, so they belong to the machine's root: no process
 * inside can change them, whatever capability it holds in its user namespace.
 */
import { type Program, REPORT_FD, REPORT_TAG } from "../calls/program.ts";
import { READY_FD, record } from "../calls/spawner.ts";
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  AT_REMOVEDIR,
  CAP_LAST,
  CLONE,
  MNT_DETACH,
  MOUNT_ATTR,
  MOVE_MOUNT_F_EMPTY_PATH,
  MS,
  O_CLOEXEC,
  O_PATH,
  OPEN_TREE_CLONE,
  PR_CAPBSET_DROP,
  PR_SET_NO_NEW_PRIVS,
  PR_SET_SECCOMP,
  RESOLVE,
  RLIMIT,
  SECCOMP_MODE_FILTER,
  SIGCHLD,
  SIGKILL,
} from "../calls/syscalls.ts";
import { maskProc } from "./mask-proc.ts";

/** Size of a workload's id range: 0..65535 inside are mapped to `idBase`.. outside. */
export const ID_COUNT = 65_536;

/** The host ids of the workload's root. */
export interface MappedIdentity {
  kind: "mapped";
  idBase: number;
  /** Capabilities of the server itself, as a bit set. */
  ownCapabilities: bigint;
}
export type Identity = MappedIdentity | { kind: "contained" } | { kind: "user"; uid: number; gid: number };

/** One overlay: `lowers` (topmost first) seen at `at`, writes kept in `<dir>/fs/<index>`. */
export interface RootPart {
  at: string;
  lowers: string[];
}

export interface HostMount {
  /** Trusted host directory. */
  base: string;
  /** Path below `base` that the workload may have created: links in it cannot leave `base`. */
  below?: string;
  path: string;
  readOnly: boolean;
}

export interface LaunchPlan {
  identity: Identity;
  /** The workload's own folder. fs/, mnt/, run/ and host/ exist; pid and exit are written there. */
  dir: string;
  parts: RootPart[];
  /** The file system of the writable layer; without it that is the folder `fs`. */
  disk?: DiskMount;
  /** Mount points inside of run/, host/ and the folder with the daemon's executable. */
  shared: { dir: string; at: string; readOnly: boolean }[];
  mounts: HostMount[];
  hostname: string;
  /** `cgroup.procs` files to join. */
  cgroups: string[];
  memoryMb: number;
  /** Memory limit per process, where no control group limits memory. */
  dataBytesMax?: number;
  /** Process limit of the workload's user (its own where ids are mapped), where no control group counts processes. */
  processesMax?: number;
  capabilities: number[];
  /** Instructions of the seccomp filter; null: no filter. */
  seccomp: Buffer | null;
  argv: string[];
  env: string[];
  /** A host file for the first process's standard input, opened before it gives up its rights. */
  stdin?: string;
}

/** A file system in a file of the workload's folder, and the number of a loop device that nothing uses. */
export interface DiskMount {
  image: string;
  device: number;
}

export function launchSteps(program: Program, plan: LaunchPlan): void {
  program.step("umask", [0], "umask");
  startFirst(program, plan);
  joinControlGroups(program, plan);
  isolationSteps(program, plan, { stage: `${plan.dir}/mnt`, helper: 2, network: CLONE.NEWNET });
  program.step("close_range", [3, REPORT_FD, 4], "hide descriptors");
  program.step("close_range", [READY_FD + 1, 0xffffffff, 4], "hide descriptors");
  const [path = ""] = plan.argv;
  program.step("execve", [path, program.texts(plan.argv), program.texts(plan.env)], "start init");
}

interface Isolation {
  /** Mount point of the new root, in a private mount namespace. */
  stage: string;
  /** Pid that the next process of this pid namespace will get. */
  helper: number;
  /** CLONE.NEWNET, or 0 when the process already has its own network namespace. */
  network: number;
}

/** All steps between a process in its own pid namespace and a command in the workload: files, devices, rights. */
export function isolationSteps(program: Program, plan: Plan, { stage: stageDir, helper, network }: Isolation): void {
  const { NEWNS, NEWIPC, NEWUTS, NEWCGROUP } = CLONE;
  program.step("unshare", [NEWNS | NEWIPC | NEWUTS | NEWCGROUP | network], "make namespaces");
  program.step("mount", [0, "/", 0, MS.REC | MS.PRIVATE, 0], "detach from the host's mounts");
  const userns = stage(program, plan, stageDir, helper);
  const trees = takeTrees(program, plan, userns);
  const devices = takeDevices(program, plan);
  if (plan.identity.kind === "mapped") actAsMapped(program, plan.identity);
  mountParts(program, plan, userns);
  enterRoot(program);
  makeDevices(program, plan, devices);
  for (const tree of trees) putTree(program, tree);
  maskProc(program);
  if (network !== 0) bringUpLoopback(program);
  program.step("sethostname", [plan.hostname, Buffer.byteLength(plan.hostname)], "set the host name");
  if (userns !== null) enterUserNamespace(program, userns);
  dropPrivileges(program, plan);
}

type Plan = Omit<LaunchPlan, "argv" | "env" | "cgroups">;

export function startFirst(program: Program, { dir, identity, stdin }: LaunchPlan): void {
  const first = program.label();
  const watcher = program.label();
  const report = program.bytes(Buffer.concat([record(REPORT_TAG.watcher), record(REPORT_TAG.pid)]));
  const pid = { offset: report.offset + 24 };
  program.step("getpid", [], "know ourselves", { store: { offset: report.offset + 8 } });
  const status = program.words([0]);
  makePidNamespace(program, identity, 0);
  program.step("clone", [SIGCHLD], "fork", { onValue: watcher, onZero: first, store: pid });

  program.place(watcher);
  const flags = 0o1101 | O_CLOEXEC; // O_WRONLY | O_CREAT | O_TRUNC
  const pidFile = program.open("openat", [AT_FDCWD, `${dir}/pid`, flags, 0o600], "create the pid file");
  program.step("write", [pidFile, pid, 8], "write the pid file");
  program.close(pidFile);
  program.step("write", [REPORT_FD, report, 32], "report the processes", { onError: "ignore" });
  // From here on only the first process holds the pipes; the reader sees their end when it exits.
  program.step("close_range", [0, READY_FD, 0], "let go of descriptors");
  program.step("wait4", [-1, status, 0, 0], "wait", { onError: "ignore" });
  // Descriptors below OWN_FD_MIN are free now, so the descriptor is 0, the lowest, and not the counted number.
  program.step("openat", [AT_FDCWD, `${dir}/exit`, flags, 0o600], "create the exit file", { onError: "ignore" });
  program.step("write", [0, status, 8], "write the exit file", { onError: "ignore" });
  program.step("exit_group", [0], "end");
  program.place(first);
  const log = program.open("openat", [AT_FDCWD, `${dir}/init.log`, 0o2101 | O_CLOEXEC, 0o600], "open the log");
  for (const fd of [1, 2]) program.step("dup3", [log, fd, 0], "write to the log");
  program.close(log);
  if (stdin !== undefined) {
    const file = program.open("openat", [AT_FDCWD, stdin, O_CLOEXEC, 0], "open the standard input");
    program.step("dup3", [file, 0, 0], "read from it");
    program.close(file);
  }
  program.step("setsid", [], "start a session", { onError: "ignore" });
}

/** Makes a pid namespace for the next children, and `more` namespaces in the same user namespace. */
export function makePidNamespace(program: Program, identity: Identity, more: number): void {
  const user = identity.kind === "user" ? CLONE.NEWUSER : 0;
  program.step("unshare", [user | CLONE.NEWPID | more], "make a pid namespace");
  if (identity.kind !== "user") return;
  program.writeFile("/proc/self/setgroups", "deny", 4, "give up groups");
  const uids = `0 ${identity.uid} 1`;
  const gids = `0 ${identity.gid} 1`;
  program.writeFile("/proc/self/uid_map", uids, uids.length, "map the user");
  program.writeFile("/proc/self/gid_map", gids, gids.length, "map the group");
}

export function joinControlGroups(program: Program, { cgroups }: Pick<LaunchPlan, "cgroups">): void {
  for (const file of cgroups) program.writeFile(file, "0", 1, `join ${file}`);
}

/**
 * Mounts a private tmpfs with the layers on the stage and makes the user namespace. That namespace is created in a
 * helper process whose pid in this pid namespace is known, so that all paths in /proc are known when encoding.
 */
export function stage(program: Program, plan: Plan, dir: string, helperPid: number, mode = 700): number | null {
  program.step("mount", ["tmpfs", dir, "tmpfs", 0, `size=1m,mode=${mode}`], "mount the stage");
  program.step("chdir", [dir], "enter the stage");
  const layers = plan.parts.flatMap(({ lowers }, part) => lowers.map((_, layer) => `l${part}.${layer}`));
  for (const name of ["p", "u", "r", ...layers]) program.step("mkdirat", [AT_FDCWD, name, 0o755], `make ${name}`);
  program.step("mount", ["proc", "p", "proc", MS.NOSUID | MS.NODEV | MS.NOEXEC, 0], "mount /proc");
  // The workload may not configure its network namespace, so low ports and ping are allowed here.
  for (const [name, value] of Object.entries(NET_SETTINGS)) {
    program.tryWriteFile(`p/sys/net/ipv4/${name}`, value, "write a network setting");
  }
  if (plan.identity.kind !== "mapped") return null;
  const helper = program.label();
  const parent = program.label();
  program.step("clone", [CLONE.NEWUSER | SIGCHLD], "make a user namespace", { onValue: parent, onZero: helper });
  program.place(helper);
  program.step("ppoll", [0, 0, 0, 0, 0], "wait to be killed");
  program.place(parent);
  const map = `0 ${plan.identity.idBase} ${ID_COUNT}`;
  const own = `p/${helperPid}`;
  program.writeFile(`${own}/uid_map`, map, map.length, "map users");
  program.writeFile(`${own}/gid_map`, map, map.length, "map groups");
  const userns = program.open("openat", [AT_FDCWD, `${own}/ns/user`, O_CLOEXEC, 0], "open the user namespace");
  program.step("kill", [helperPid, SIGKILL], "end the helper");
  program.step("wait4", [helperPid, 0, 0, 0], "reap the helper");
  return userns;
}

/**
 * Creates files as the workload's root from here on: a mapped mount accepts no other owner, and an overlay acts as the
 * user who mounted it. The kernel drops file capabilities at the change of id; this step takes them back.
 */
export function actAsMapped(program: Program, identity: MappedIdentity): void {
  program.step("setfsgid", [identity.idBase], "act as the workload's group");
  program.step("setfsuid", [identity.idBase], "act as the workload's root");
  setCapabilities(program, identity.ownCapabilities, "keep capabilities");
}

export function setCapabilities(program: Program, set: bigint, what: string): void {
  const low = set & 0xffffffffn;
  const high = set >> 32n;
  const header = program.words([0x20080522]); // version 3, pid 0: ourselves
  // effective, permitted, inheritable: the low halves, then the high halves
  program.step("capset", [header, program.words([low | (low << 32n), high << 32n, high])], what);
}

const NET_SETTINGS = { ip_unprivileged_port_start: "0", ping_group_range: "0 4294967294" };

export interface Tree {
  fd: number;
  path: string;
  make: boolean;
}

/** Opens, as detached mounts, all host folders that will be visible inside. */
export function takeTrees(program: Program, plan: Plan, userns: number | null): Tree[] {
  const take = (path: string, readOnly: boolean, what: string): number => {
    const fd = program.open("open_tree", [AT_FDCWD, path, OPEN_TREE_CLONE | O_CLOEXEC], `open ${what}`);
    const flags = MOUNT_ATTR.NOSUID | MOUNT_ATTR.NODEV | (readOnly ? MOUNT_ATTR.RDONLY : 0);
    setAttributes(program, fd, flags, userns, what);
    return fd;
  };
  plan.parts.forEach(({ lowers }, part) => {
    lowers.forEach((lower, layer) => {
      const fd = take(lower, true, `layer ${layer} of part ${part}`);
      program.step("move_mount", [fd, "", AT_FDCWD, `l${part}.${layer}`, MOVE_MOUNT_F_EMPTY_PATH], "place a layer");
      program.close(fd);
    });
  });
  if (plan.disk) mountDisk(program, plan.disk, plan.parts.length);
  const upper = take(plan.disk ? DISK_DIR : `${plan.dir}/fs`, false, "the writable layer");
  program.step("move_mount", [upper, "", AT_FDCWD, "u", MOVE_MOUNT_F_EMPTY_PATH], "place the writable layer");
  program.close(upper);
  const proc = program.open("open_tree", [AT_FDCWD, "p", OPEN_TREE_CLONE | O_CLOEXEC], "open /proc");
  return [
    { fd: proc, path: "/proc", make: false },
    ...plan.shared.map(({ dir, at, readOnly }) => ({ fd: take(dir, readOnly, at), path: at, make: false })),
    ...plan.mounts.map((mount) => ({ fd: openMount(program, mount, userns), path: mount.path, make: true })),
  ];
}

const DISK_DIR = "d";
const LOOP_CTL_ADD = 0x4c80;
const LOOP_CONFIGURE = 0x4c0a;
/** `struct loop_config`: the file's descriptor, 232 bytes of `struct loop_info64` from byte 8 on, and spare ones. */
const LOOP_CONFIG = { bytes: 304, flagsAt: 60, autoclear: 4 };
/** A loop device that somebody else has taken meanwhile. */
export const DEVICE_TAKEN = "take the loop device";
/** See `loop-image.ts`. */
export const DISK_OPTIONS = "discard,noinit_itable";

/**
 * Mounts the disk on the stage. Nothing on the host sees it, and the kernel frees the loop device (autoclear) with the
 * last namespace that has it.
 */
function mountDisk(program: Program, { image, device }: DiskMount, parts: number): void {
  const path = `/dev/loop${device}`;
  const control = program.open("openat", [AT_FDCWD, "/dev/loop-control", 2 | O_CLOEXEC, 0], "open the loop control");
  program.step("ioctl", [control, LOOP_CTL_ADD, device], "make a loop device", { onError: "ignore" }); // it is there
  program.close(control);
  const file = program.open("openat", [AT_FDCWD, image, 2 | O_CLOEXEC, 0], "open the disk");
  const loop = program.open("openat", [AT_FDCWD, path, 2 | O_CLOEXEC, 0], "open the loop device");
  const config = Buffer.alloc(LOOP_CONFIG.bytes);
  config.writeUInt32LE(file, 0);
  config.writeUInt32LE(LOOP_CONFIG.autoclear, LOOP_CONFIG.flagsAt);
  program.step("ioctl", [loop, LOOP_CONFIGURE, program.bytes(config)], DEVICE_TAKEN);
  program.step("mkdirat", [AT_FDCWD, DISK_DIR, 0o755], "make the disk's place");
  program.step("mount", [path, DISK_DIR, "ext4", MS.NOSUID | MS.NODEV, DISK_OPTIONS], "mount the disk");
  program.close(loop);
  program.close(file);
  for (let part = 0; part < parts; part++) {
    for (const name of [`${part}`, `${part}/upper`, `${part}/work`])
      program.step("mkdirat", [AT_FDCWD, `${DISK_DIR}/${name}`, 0o755], `make ${name}`, { onError: "ignore" });
  }
}

/** A detached mount of a host directory; also used for mounts into a running workload. */
export function openMount(program: Program, mount: HostMount, userns: number | null): number {
  const base = program.open("openat", [AT_FDCWD, mount.base, O_PATH | O_CLOEXEC, 0], "open the mount's source");
  const how = program.words([O_PATH | O_CLOEXEC, 0, RESOLVE.IN_ROOT | RESOLVE.NO_MAGICLINKS]);
  const parts = (mount.below ?? "").split("/").filter((part) => part !== "");
  let source = base;
  parts.forEach((name, index) => {
    program.step("mkdirat", [source, name, 0o755], `make ${name}`, { onError: "ignore" });
    if (source !== base) program.close(source);
    const path = parts.slice(0, index + 1).join("/");
    source = program.open("openat2", [base, path, how, 24], `open ${path} of the mount's source`);
  });
  const flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | O_CLOEXEC;
  const tree = program.open("open_tree", [source, "", flags], "open the mount's source");
  const attributes = MOUNT_ATTR.NOSUID | MOUNT_ATTR.NODEV | (mount.readOnly ? MOUNT_ATTR.RDONLY : 0);
  setAttributes(program, tree, attributes, userns, `the mount at ${mount.path}`);
  if (source !== base) program.close(source);
  program.close(base);
  return tree;
}

function setAttributes(program: Program, fd: number, flags: number, userns: number | null, what: string): void {
  const set = userns === null ? flags : flags | MOUNT_ATTR.IDMAP;
  const attributes = program.words([set, 0, 0, userns ?? 0]);
  program.step("mount_setattr", [fd, "", AT_EMPTY_PATH, attributes, 32], `set attributes of ${what}`);
}

/**
 * An overlay makes these with mode 000. A server without root could not remove them later, so their mode is changed.
 */
const OVERLAY_FOLDERS = ["work", "work/incompat", "work/incompat/volatile"];

/** A file in two folders. */
const VOLATILE_MARKS = [
  ["work/incompat/volatile/dirty", 0],
  ["work/incompat/volatile", AT_REMOVEDIR],
  ["work/incompat", AT_REMOVEDIR],
] as const;

/** Mounts the overlays at `r` on the stage. Names are relative: no path of the host needs escaping. */
export function mountParts(program: Program, { parts, identity }: Plan, userns: number | null): void {
  parts.forEach(({ at, lowers }, part) => {
    const lower = lowers.map((_, layer) => `l${part}.${layer}`).join(":");
    const work = `u/${part}/work`;
    const layers = `lowerdir=${lower},upperdir=u/${part}/upper,workdir=${work}`;
    // An overlay refuses files that a volatile overlay wrote while its mark is there. What was written is there all the
    // same: only a crash of the machine, before the kernel wrote it to the disk, loses some.
    for (const [mark, flags] of VOLATILE_MARKS)
      program.step("unlinkat", [AT_FDCWD, `${work}/${mark}`, flags], "remove a mark", { onError: "ignore" });
    // volatile: syncs of a workload wait for no disk, so that no workload makes others wait for it.
    const options = `${layers},redirect_dir=nofollow,metacopy=off,index=off,volatile`;
    const data = identity.kind === "user" ? `${layers},userxattr,volatile` : options;
    const flags = MS.NODEV | (userns === null ? MS.NOSUID : 0);
    program.step("mount", ["overlay", at === "/" ? "r" : `r${at}`, "overlay", flags, data], `mount the files at ${at}`);
    for (const folder of OVERLAY_FOLDERS) {
      const path = `${work}/${folder}`;
      program.step("fchmodat", [AT_FDCWD, path, 0o700], `open ${path} to its owner`, { onError: "ignore" });
    }
  });
}

function enterRoot(program: Program): void {
  program.step("chdir", ["r"], "enter the new root");
  program.step("pivot_root", [".", "."], "change the root");
  program.step("umount2", [".", MNT_DETACH], "let go of the old root");
  program.step("chdir", ["/"], "enter the new root");
}

const DEVICES = { null: [1, 3], zero: [1, 5], full: [1, 7], random: [1, 8], urandom: [1, 9], tty: [5, 0] } as const;
const LINKS = {
  ptmx: "pts/ptmx",
  fd: "/proc/self/fd",
  stdin: "/proc/self/fd/0",
  stdout: "/proc/self/fd/1",
  stderr: "/proc/self/fd/2",
};

/** `nodes`: the host's own device files, where the kernel does not allow making new ones. */
function makeDevices(program: Program, { identity, memoryMb }: Plan, nodes: Tree[]): void {
  const owner = identity.kind === "mapped" ? identity.idBase : 0;
  const owned = `uid=${owner},gid=${owner}`;
  program.step("mount", ["tmpfs", "/dev", "tmpfs", MS.NOSUID, `size=64k,mode=755,${owned}`], "mount /dev");
  for (const [name, [major, minor]] of Object.entries(DEVICES)) {
    const path = `/dev/${name}`;
    const kind = nodes.length > 0 ? 0o100666 : 0o020666; // an empty file to mount on, or the device
    program.step("mknodat", [AT_FDCWD, path, kind, nodes.length > 0 ? 0 : (major << 8) | minor], `make ${path}`);
  }
  for (const node of nodes) putTree(program, node);
  for (const [name, target] of Object.entries(LINKS)) {
    program.step("symlinkat", [target, AT_FDCWD, `/dev/${name}`], `make /dev/${name}`);
  }
  for (const name of ["pts", "shm"]) program.step("mkdirat", [AT_FDCWD, `/dev/${name}`, 0o755], `make /dev/${name}`);
  const { NOSUID, NODEV, NOEXEC } = MS;
  const tty = identity.kind === "user" ? "" : `,gid=${owner + 5}`; // one user has one group
  const pts = `newinstance,ptmxmode=0666,mode=620${tty}`;
  program.step("mount", ["devpts", "/dev/pts", "devpts", NOSUID | NOEXEC, pts], "mount /dev/pts");
  const shm = `mode=1777,${sharedMemory(memoryMb)},${owned}`;
  program.step("mount", ["tmpfs", "/dev/shm", "tmpfs", NOSUID | NODEV | NOEXEC, shm], "mount /dev/shm");
}

/** Limits shared memory to half: its files use memory that is not freed when a process dies. */
const sharedMemory = (memoryMb: number): string => `size=${Math.floor(memoryMb / 2)}m`;

/** Runs in the workload's mount namespace, before any code of its owner has run there. */
export function resizeSharedMemory(program: Program, memoryMb: number): void {
  const flags = MS.REMOUNT | MS.NOSUID | MS.NODEV | MS.NOEXEC;
  program.step("mount", [0, "/dev/shm", 0, flags, sharedMemory(memoryMb)], "resize /dev/shm");
}

/** Opens device files of the host before its root is left. */
function takeDevices(program: Program, { identity }: Plan): Tree[] {
  if (identity.kind !== "user") return [];
  return Object.keys(DEVICES).map((name) => {
    const path = `/dev/${name}`;
    const fd = program.open("open_tree", [AT_FDCWD, path, OPEN_TREE_CLONE | O_CLOEXEC], `open ${path}`);
    return { fd, path, make: false };
  });
}

function putTree(program: Program, { fd, path, make }: Tree): void {
  if (make) makePath(program, path);
  program.step("move_mount", [fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH], `mount ${path}`);
  program.close(fd);
}

export function makePath(program: Program, path: string): void {
  const parts = path.split("/").filter((part) => part !== "");
  parts.forEach((_, index) => {
    const prefix = `/${parts.slice(0, index + 1).join("/")}`;
    program.step("mkdirat", [AT_FDCWD, prefix, 0o755], `make ${prefix}`, { onError: "ignore" });
  });
}

export function bringUpLoopback(program: Program): void {
  const request = Buffer.alloc(40);
  request.write("lo");
  request.writeUInt16LE(0x41, 16); // IFF_UP | IFF_RUNNING
  const socket = program.open("socket", [2, 2, 0], "open a socket");
  program.step("ioctl", [socket, 0x8914, program.bytes(request)], "bring up the loopback interface");
  program.close(socket);
}

function enterUserNamespace(program: Program, userns: number): void {
  program.step("setns", [userns, CLONE.NEWUSER], "enter the user namespace");
  program.step("setgroups", [0, 0], "drop groups");
  program.step("setresgid", [0, 0, 0], "become the workload's root");
  program.step("setresuid", [0, 0, 0], "become the workload's root");
}

function dropPrivileges(program: Program, plan: Plan): void {
  const { identity, capabilities, seccomp, dataBytesMax, processesMax } = plan;
  if (identity.kind === "contained") program.step("setgroups", [0, 0], "drop groups");
  // A limit of one byte, unlike zero, also stops the kernel from piping a crash into the host's crash handler.
  program.step("prlimit64", [0, RLIMIT.CORE, program.words([1, 1]), 0], "forbid core dumps");
  if (dataBytesMax !== undefined) {
    program.step("prlimit64", [0, RLIMIT.DATA, program.words([dataBytesMax, dataBytesMax]), 0], "limit memory");
  }
  if (processesMax !== undefined && identity.kind !== "contained") {
    program.step("prlimit64", [0, RLIMIT.NPROC, program.words([processesMax, processesMax]), 0], "limit processes");
  }
  for (let capability = 0; capability <= CAP_LAST; capability++) {
    if (capabilities.includes(capability)) continue;
    const options = { onError: "ignore" } as const; // an older kernel does not know the newest ones
    program.step("prctl", [PR_CAPBSET_DROP, capability, 0, 0, 0], "drop a capability", options);
  }
  const kept = capabilities.reduce((set, capability) => set | (1n << BigInt(capability)), 0n);
  setCapabilities(program, kept, "give up capabilities");
  program.step("umask", [0o022], "umask");
  program.step("prctl", [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0], "forbid new privileges");
  if (!seccomp) return;
  const filter = program.words([seccomp.length / 8, program.bytes(seccomp)]);
  program.step("prctl", [PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0], "install the system call filter");
}
