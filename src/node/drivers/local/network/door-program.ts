/**
 * A door of a task without a daemon: a listener on the task's loopback whose connections lead to the server. The
 * watcher accepts; a process in the task's own namespace and control groups copies the bytes, so that the task pays for
 * its connections. That process tells the server which task connects and waits for permission.
 */

import type { Data, Label, Program } from "../calls/program.ts";
import { AT_FDCWD, CLONE_PIDFD, O_CLOEXEC, PR_SET_DUMPABLE, SIGCHLD, SIGTERM } from "../calls/syscalls.ts";
import { setCapabilities } from "../workload/launch-program.ts";

export interface DoorSteps {
  listener: number;
  /** Sixteen bytes that tell the server which task connects to which door. */
  hello: Data;
  /** The server's socket as a folder to enter and a name in it, since socket paths are limited in length. */
  socket: { dir: string; name: string };
  /** Address of COPY_BYTES of memory. */
  buffer: number;
}

export const COPY_BYTES = 64 * 1024;
const BACKLOG = 128;
const SOCK_NONBLOCK = 0o4000;
const [P_PIDFD, WEXITED] = [3, 4];
const SHUT = { WRITE: 1, BOTH: 2 } as const;

/** Returns the listener's descriptor. */
export function listenOnLoopback(program: Program, port: number): number {
  const address = Buffer.from([2, 0, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  const fd = program.open("socket", [2, 1 | SOCK_NONBLOCK | O_CLOEXEC, 0], "open a door");
  program.step("bind", [fd, program.bytes(address), address.length], `take port ${port}`);
  program.step("listen", [fd, BACKLOG], `listen on port ${port}`);
  return fd;
}

/** Accepts one pending connection, if there is one. */
export function doorSteps(program: Program, door: DoorSteps): void {
  const [next, drop, waiting, middle] = [program.label(), program.label(), program.label(), program.label()];
  const ignore = { onError: "ignore" } as const;
  const connection = program.reserve();
  program.step("accept4", [door.listener, 0, 0, O_CLOEXEC], "look at the door", { onError: next });
  const pidfd = program.reserve();
  const carrier = { onZero: middle, onValue: waiting, onError: drop };
  program.step("clone", [CLONE_PIDFD | SIGCHLD, 0, program.words([0])], "start who carries", carrier);
  program.place(waiting);
  program.step("waitid", [P_PIDFD, pidfd, 0, WEXITED, 0], "let go of who carries", ignore);
  program.step("close", [pidfd], "close", ignore);
  program.place(drop);
  program.step("close", [connection], "close", { onZero: next, onValue: next, onError: next });
  program.release(pidfd);
  program.release(connection);
  carry(program, middle, connection, door);
  program.place(next);
}

/** Forks twice, so that the namespace's init becomes the parent, and not the watcher. */
function carry(program: Program, start: Label, connection: number, { hello, socket, buffer }: DoorSteps): void {
  const [second, quit, back, forth] = [program.label(), program.label(), program.label(), program.label()];
  const orQuit = { onError: quit } as const;
  program.place(start);
  program.step("clone", [SIGCHLD], "fork", { onZero: second, onValue: quit, onError: quit });
  program.place(second);
  program.step("rt_sigaction", [SIGTERM, program.words([1, 0, 0, 0]), 0, 8], "end last", orQuit);
  program.step("dup3", [connection, 0, 0], "keep the connection", orQuit);
  program.step("close_range", [1, 0xffffffff, 0], "let go of descriptors", orQuit);
  program.step("openat", [AT_FDCWD, "/proc/self/oom_score_adj", 1, 0], "open", orQuit);
  program.step("write", [1, "0", 1], "be as likely to end as anybody", orQuit);
  program.step("close", [1], "close", orQuit);
  program.step("chdir", [socket.dir], "enter the folder of the socket", orQuit);
  const address = Buffer.from(`\x01\0${socket.name}\0`, "latin1");
  program.step("socket", [1, 1, 0], "make a socket", orQuit); // 1, the lowest free number
  program.step("connect", [1, program.bytes(address), address.length], "go to the server", orQuit);
  program.step("write", [1, hello, 16], "say who knocks", orQuit);
  program.step("read", [1, buffer, 1], "wait to be let in", { onZero: quit, onError: quit });
  program.step("prctl", [PR_SET_DUMPABLE, 0, 0, 0, 0], "be left alone", orQuit);
  setCapabilities(program, 0n, "give up capabilities");
  program.step("clone", [SIGCHLD], "fork", { onZero: back, onValue: forth, onError: quit });
  copy(program, forth, { from: 0, to: 1, buffer });
  copy(program, back, { from: 1, to: 0, buffer });
  program.place(quit);
  program.step("exit_group", [0], "end");
}

/** Copies until the end of one side has been passed to the other. An error ends both directions. */
function copy(
  program: Program,
  start: Label,
  { from, to, buffer }: { from: number; to: number; buffer: number },
): void {
  const [write, cut, quit] = [program.label(), program.label(), program.label()];
  const over = program.label();
  program.place(start);
  program.step("read", [from, buffer, COPY_BYTES], "read", {
    onValue: write,
    onZero: over,
    onError: cut,
    store: { label: write, word: 3 },
  });
  program.place(write);
  program.step("write", [to, buffer, 0], "write", { onValue: start, onZero: start, onError: cut });
  program.place(over);
  program.step("shutdown", [to, SHUT.WRITE], "tell the end", { onZero: quit, onValue: quit, onError: quit });
  program.place(cut);
  for (const fd of [from, to]) program.step("shutdown", [fd, SHUT.BOTH], "hang up", { onError: "ignore" });
  program.place(quit);
  program.step("exit_group", [0], "end");
}
