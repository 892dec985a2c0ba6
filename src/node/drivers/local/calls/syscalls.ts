/** System call numbers and kernel constants that Node does not name. */
import { constants } from "node:fs";
import type { Arch } from "./stepper.ts";

/** System calls that programs make: [x64, arm64]. Calls added since 2019 have the same number everywhere. */
const NUMBERS = {
  read: [0, 63],
  write: [1, 64],
  close: [3, 57],
  lseek: [8, 62],
  mmap: [9, 222],
  rt_sigaction: [13, 134],
  ioctl: [16, 29],
  pread64: [17, 67],
  pwrite64: [18, 68],
  writev: [20, 66],
  getpid: [39, 172],
  socket: [41, 198],
  connect: [42, 203],
  recvfrom: [45, 207],
  shutdown: [48, 210],
  bind: [49, 200],
  listen: [50, 201],
  clone: [56, 220],
  execve: [59, 221],
  wait4: [61, 260],
  kill: [62, 129],
  ftruncate: [77, 46],
  chdir: [80, 49],
  fchdir: [81, 50],
  umask: [95, 166],
  setsid: [112, 157],
  setgroups: [116, 159],
  setresuid: [117, 147],
  setresgid: [119, 149],
  setfsuid: [122, 151],
  setfsgid: [123, 152],
  fsetxattr: [190, 7],
  capset: [126, 91],
  pivot_root: [155, 41],
  prctl: [157, 167],
  mount: [165, 40],
  rt_sigprocmask: [14, 135],
  rt_sigtimedwait: [128, 137],
  waitid: [247, 95],
  umount2: [166, 39],
  sethostname: [170, 161],
  exit_group: [231, 94],
  openat: [257, 56],
  mkdirat: [258, 34],
  mknodat: [259, 33],
  unlinkat: [263, 35],
  symlinkat: [266, 36],
  fchmodat: [268, 53],
  ppoll: [271, 73],
  unshare: [272, 97],
  timerfd_create: [283, 85],
  fallocate: [285, 47],
  timerfd_settime: [286, 86],
  accept4: [288, 242],
  dup3: [292, 24],
  prlimit64: [302, 261],
  setns: [308, 268],
  pidfd_send_signal: [424, 424],
  open_tree: [428, 428],
  move_mount: [429, 429],
  close_range: [436, 436],
  openat2: [437, 437],
  mount_setattr: [442, 442],
} as const;

export type SyscallName = keyof typeof NUMBERS;

export const syscallNumber = (name: SyscallName, arch: Arch): number => NUMBERS[name][arch === "x64" ? 0 : 1];

export const AT_FDCWD = -100;
export const AT_EMPTY_PATH = 0x1000;
export const AT_REMOVEDIR = 0x200;
export const O_CLOEXEC = 0o2000000;
export const O_PATH = 0o10000000;
export const { O_DIRECTORY, O_NOFOLLOW } = constants; // these two differ between architectures

export const CLONE_PIDFD = 0x1000;

export const CLONE = {
  NEWTIME: 0x80,
  NEWNS: 0x20000,
  NEWCGROUP: 0x2000000,
  NEWUTS: 0x4000000,
  NEWIPC: 0x8000000,
  NEWUSER: 0x10000000,
  NEWPID: 0x20000000,
  NEWNET: 0x40000000,
} as const;

export const MS = { NOSUID: 2, NODEV: 4, NOEXEC: 8, REMOUNT: 32, REC: 16384, PRIVATE: 1 << 18 } as const;
export const MNT_DETACH = 2;
export const OPEN_TREE_CLONE = 1;
export const MOVE_MOUNT_F_EMPTY_PATH = 4;
export const MOUNT_ATTR = { RDONLY: 1, NOSUID: 2, NODEV: 4, NOEXEC: 8, IDMAP: 0x100000 } as const;
/** Flags of openat2. IN_ROOT: absolute links and ".." stay below the starting directory. BENEATH: they are refused. */
export const RESOLVE = { NO_XDEV: 0x01, NO_MAGICLINKS: 0x02, NO_SYMLINKS: 0x04, BENEATH: 0x08, IN_ROOT: 0x10 } as const;

export const PR_SET_PDEATHSIG = 1;
export const PR_SET_DUMPABLE = 4;
export const PR_SET_NAME = 15;
export const PR_SET_SECCOMP = 22;
export const PR_CAPBSET_DROP = 24;
export const PR_SET_NO_NEW_PRIVS = 38;
export const SECCOMP_MODE_FILTER = 2;
export const SIGKILL = 9;
export const SIGUSR1 = 10;
export const SIGPIPE = 13;
export const SIGTERM = 15;
export const SIGCHLD = 17;
export const RLIMIT = { DATA: 2, CORE: 4, NPROC: 6 } as const;

/** Capability numbers up to CAP_CHECKPOINT_RESTORE. */
export const CAP_LAST = 40;
export const CAP = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  FSETID: 4,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  SETPCAP: 8,
  SYS_CHROOT: 18,
  SETFCAP: 31,
} as const;
