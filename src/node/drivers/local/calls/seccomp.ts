/**
 * The system call filter, as classic BPF. It refuses calls that a workload never needs and calls in which most kernel
 * bugs were found. The call number decides, except for new-namespace flags of clone, address families of socket and two
 * terminal requests. Calls newer than this list answer ENOSYS.
 */
import type { Arch } from "./stepper.ts";
import { CLONE } from "./syscalls.ts";

/** Refused with EPERM, by name: [x64, arm64]; -1 where an architecture has no such call. */
export const REFUSED: Record<string, readonly [number, number]> = {
  syslog: [103, 116],
  ustat: [136, -1],
  sysfs: [139, -1],
  vhangup: [153, 58],
  modify_ldt: [154, -1],
  pivot_root: [155, 41],
  _sysctl: [156, -1],
  adjtimex: [159, 171],
  acct: [163, 89],
  settimeofday: [164, 170],
  mount: [165, 40],
  umount2: [166, 39],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, -1],
  ioperm: [173, -1],
  create_module: [174, -1],
  init_module: [175, 105],
  delete_module: [176, 106],
  get_kernel_syms: [177, -1],
  query_module: [178, -1],
  quotactl: [179, 60],
  nfsservctl: [180, 42],
  uselib: [134, -1],
  lookup_dcookie: [212, 18],
  clock_settime: [227, 112],
  kexec_load: [246, 104],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  migrate_pages: [256, 238],
  unshare: [272, 97],
  move_pages: [279, 239],
  perf_event_open: [298, 241],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  open_by_handle_at: [304, 265],
  clock_adjtime: [305, 266],
  setns: [308, 268],
  finit_module: [313, 273],
  kexec_file_load: [320, 294],
  bpf: [321, 280],
  userfaultfd: [323, 282],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  quotactl_fd: [443, 443],
  memfd_secret: [447, 447],
};

/** Refused with ENOSYS: programs then fall back to an older call that the filter can inspect or that is harmless. */
export const ABSENT: Record<string, readonly [number, number]> = {
  clone3: [435, 435], // its flags lie in memory, which a filter cannot read
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
};

/** The highest call number this list covers (cachestat .. mseal are harmless). Later ones answer ENOSYS. */
const KNOWN_LAST = 462;

const CALL = { clone: [56, 220], socket: [41, 198], ioctl: [16, 29] } as const;
const AUDIT_ARCH: Record<Arch, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };
const NEW_NAMESPACES =
  CLONE.NEWNS | CLONE.NEWCGROUP | CLONE.NEWUTS | CLONE.NEWIPC | CLONE.NEWUSER | CLONE.NEWPID | CLONE.NEWNET;
/** unspecified, unix, IPv4, IPv6, netlink. Not vsock, which would reach the machine's own hypervisor. */
const FAMILIES = [0, 1, 2, 10, 16];
/** TIOCSTI and TIOCLINUX put characters into a terminal as if typed. */
const TERMINAL_REQUESTS = [0x5412, 0x541c];

const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;
const ALLOW = 0x7fff0000;
const errno = (code: number): number => 0x00050000 | code;

type Instruction = [code: number, jumpTrue: number, jumpFalse: number, k: number];
const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const give = (action: number): Instruction => [0x06, 0, 0, action];
const OFFSET = { number: 0, arch: 4, arg0: 16, arg1: 24 } as const;

/** Skips `count` instructions unless the accumulator equals k / has a bit of k / is above k. */
const unlessEqual = (k: number, count: number): Instruction => [0x15, 0, count, k];
const ifEqual = (k: number, count: number): Instruction => [0x15, count, 0, k];
const unlessSet = (k: number, count: number): Instruction => [0x45, 0, count, k];
const unlessAbove = (k: number, count: number): Instruction => [0x25, 0, count, k];

export function seccompFilter(arch: Arch): Buffer {
  const column = arch === "x64" ? 0 : 1;
  const numbers = (table: Record<string, readonly [number, number]>): number[] =>
    Object.values(table)
      .map((each) => each[column])
      .filter((number) => number >= 0);
  const program: Instruction[] = [
    load(OFFSET.arch),
    ifEqual(AUDIT_ARCH[arch], 1),
    give(errno(ENOSYS)), // calls of another architecture, such as 32-bit
    load(OFFSET.number),
    unlessAbove(KNOWN_LAST, 1),
    give(errno(ENOSYS)), // also the x32 calls, whose numbers start at 2^30
  ];
  for (const number of numbers(ABSENT)) program.push(unlessEqual(number, 1), give(errno(ENOSYS)));
  for (const number of numbers(REFUSED)) program.push(unlessEqual(number, 1), give(errno(EPERM)));
  program.push(
    unlessEqual(CALL.clone[column], 4),
    load(OFFSET.arg0),
    unlessSet(NEW_NAMESPACES, 1),
    give(errno(EPERM)),
    give(ALLOW),
  );
  program.push(unlessEqual(CALL.socket[column], FAMILIES.length + 3), load(OFFSET.arg0));
  FAMILIES.forEach((family, index) => {
    program.push(ifEqual(family, FAMILIES.length - index));
  });
  program.push(give(errno(EAFNOSUPPORT)), give(ALLOW));
  program.push(unlessEqual(CALL.ioctl[column], TERMINAL_REQUESTS.length + 3), load(OFFSET.arg1));
  TERMINAL_REQUESTS.forEach((request, index) => {
    program.push(ifEqual(request, TERMINAL_REQUESTS.length - index));
  });
  program.push(give(ALLOW), give(errno(EPERM)), give(ALLOW));
  return encode(program);
}

function encode(program: Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, jumpTrue, jumpFalse, k], index) => {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(jumpTrue, index * 8 + 2);
    bytes.writeUInt8(jumpFalse, index * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, index * 8 + 4);
  });
  return bytes;
}
