/**
 * System calls that neither Node nor Bun offers. Loaded at first use: the daemon in most sandboxes never needs them.
 */
import { dlopen, type Signature } from "bun:ffi";

const SIGNATURES = {
  prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  waitid: { args: ["i32", "i32", "ptr", "i32"], returns: "i32" },
  wait4: { args: ["i32", "ptr", "i32", "ptr"], returns: "i32" },
  getrlimit: { args: ["i32", "ptr"], returns: "i32" },
  setrlimit: { args: ["i32", "ptr"], returns: "i32" },
  fallocate: { args: ["i32", "i32", "i64", "i64"], returns: "i32" },
  mkfifo: { args: ["ptr", "u32"], returns: "i32" },
  inotify_init1: { args: ["i32"], returns: "i32" },
  inotify_add_watch: { args: ["i32", "ptr", "u32"], returns: "i32" },
  inotify_rm_watch: { args: ["i32", "i32"], returns: "i32" },
  read: { args: ["i32", "ptr", "u64"], returns: "i64" },
  lgetxattr: { args: ["ptr", "ptr", "ptr", "u64"], returns: "i64" },
  tcflow: { args: ["i32", "i32"], returns: "i32" },
  setgroups: { args: ["u64", "ptr"], returns: "i32" },
  setresgid: { args: ["u32", "u32", "u32"], returns: "i32" },
  setresuid: { args: ["u32", "u32", "u32"], returns: "i32" },
} satisfies Record<string, Signature>;

type Name = keyof typeof SIGNATURES;

/** glibc, then musl on both architectures, then whatever the linker calls libc. */
const LIBRARIES = ["libc.so.6", "libc.musl-aarch64.so.1", "libc.musl-x86_64.so.1", "libc.so"];

let loaded: Record<string, (...args: (number | bigint | Uint8Array | null)[]) => number | bigint> | null = null;

function call(name: Name, ...args: (number | bigint | Uint8Array | null)[]): number {
  loaded ??= load();
  const symbol = loaded[name];
  if (!symbol) throw new Error(`libc has no ${name}`);
  return Number(symbol(...args));
}

function load(): NonNullable<typeof loaded> {
  let failure: unknown;
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, SIGNATURES).symbols;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

const cString = (bytes: Uint8Array): Uint8Array => Buffer.concat([bytes, Buffer.of(0)]);

const PR_SET_CHILD_SUBREAPER = 36;
/** Makes orphans among this process's descendants its children, even where it is not PID 1. */
export const becomeSubreaper = (): boolean => call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) === 0;

const P_ALL = 0;
const WNOHANG = 1;
const WEXITED = 4;
const WNOWAIT = 0x01000000;
const SI_PID_OFFSET = 16; // siginfo_t on 64-bit Linux: three ints, padding, then the pid
const siginfo = Buffer.alloc(128);

/** The pid of a child that has ended but was not reaped, or 0. Does not reap it. */
export function peekZombie(): number {
  siginfo.fill(0);
  return call("waitid", P_ALL, 0, siginfo, WEXITED | WNOHANG | WNOWAIT) === 0 ? siginfo.readInt32LE(SI_PID_OFFSET) : 0;
}

const waitStatus = Buffer.alloc(4);

/** Reaps one ended child. */
export function reap(pid: number): { exitCode: number | null; signal: number | null } | null {
  if (call("wait4", pid, waitStatus, WNOHANG, null) !== pid) return null;
  const status = waitStatus.readInt32LE(0);
  const signal = status & 0x7f;
  return signal === 0 ? { exitCode: (status >> 8) & 0xff, signal: null } : { exitCode: null, signal };
}

const RLIMIT_NPROC = 6;
const INFINITY_BITS = 2n ** 64n - 1n;
const ownLimit = new BigUint64Array(2); // the soft limit and the hard limit
const lowLimit = new BigUint64Array(2);
const bytesOf = (words: BigUint64Array): Uint8Array => new Uint8Array(words.buffer);

/** Limits processes started during `work`: they cannot fork once their user has `max` processes (RLIMIT_NPROC). */
export function withProcessLimit<T>(max: number, work: () => T): T {
  if (call("getrlimit", RLIMIT_NPROC, bytesOf(ownLimit)) !== 0) return work();
  const [own = INFINITY_BITS, hard = INFINITY_BITS] = ownLimit;
  lowLimit.set([own < BigInt(max) ? own : BigInt(max), hard]);
  call("setrlimit", RLIMIT_NPROC, bytesOf(lowLimit));
  try {
    return work();
  } finally {
    call("setrlimit", RLIMIT_NPROC, bytesOf(ownLimit));
  }
}

const PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01;
/** Frees the disk blocks of a file's first `bytes` without moving the rest. False where the file system cannot. */
export const punchHead = (fd: number, bytes: number): boolean =>
  call("fallocate", fd, PUNCH_HOLE_KEEP_SIZE, 0n, BigInt(bytes)) === 0;

export const makeFifo = (path: string, mode: number): boolean => call("mkfifo", cString(Buffer.from(path)), mode) === 0;

const IN_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000;
/** -1 when the user has no inotify instance left. */
export const inotifyOpen = (): number => call("inotify_init1", IN_NONBLOCK_CLOEXEC);
export const inotifyAdd = (fd: number, path: Uint8Array, mask: number): number =>
  call("inotify_add_watch", fd, cString(path), mask);
export const inotifyRemove = (fd: number, watch: number): void => void call("inotify_rm_watch", fd, watch);
/** Bytes read, or -1; on a non-blocking descriptor -1 mostly means "nothing yet". */
export const readNow = (fd: number, buffer: Uint8Array): number => call("read", fd, buffer, buffer.byteLength);

const TCOOFF = 0;
const TCOON = 1;
/** Stops or restarts what programs write to the terminal. False where the kernel cannot, as gVisor's. */
export const flowTerminal = (fd: number, isOn: boolean): boolean => call("tcflow", fd, isOn ? TCOON : TCOOFF) === 0;

/** As root, and in a user namespace. */
const OPAQUE_MARKS = ["trusted.overlay.opaque", "user.overlay.opaque"].map((name) => cString(Buffer.from(name)));
const mark = Buffer.alloc(1);
/** Whether the folder hides the folder of the same name in the layers below. */
export const isOpaque = (path: Uint8Array): boolean =>
  OPAQUE_MARKS.some((name) => call("lgetxattr", cString(path), name, mark, 1) === 1 && mark.toString() === "y");

/**
 * Gives up root for good, in all threads: the C library, unlike the bare system call, covers every thread. Drops
 * capabilities.
 */
export function becomeUser(uid: number, gid: number): void {
  const done = [call("setgroups", 0n, null), call("setresgid", gid, gid, gid), call("setresuid", uid, uid, uid)];
  if (done.some((result) => result !== 0)) throw new Error(`the process could not become user ${uid}`);
}

const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;
export const endWithParent = (): boolean => call("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) === 0;
