/**
 * The system calls that mount a drive of another node. Two processes stay:
 *
 *   holder  a few pages; keeps /dev/fuse open, and starts the second one again when it ends, so that the mount
 *           outlives it
 *   server  Node; answers the kernel. It ends the holder when the mount is gone
 */
import type { Program } from "../calls/program.ts";
import { AT_FDCWD, MS, PR_SET_PDEATHSIG, SIGCHLD, SIGKILL } from "../calls/syscalls.ts";
import { REMOTE_DRIVE } from "./loop-image.ts";

export interface RemoteMountPlan {
  /** Mount point. */
  at: string;
  /** Arguments of the server, the program first. */
  argv: string[];
}

const O_RDWR = 2;
/** The descriptor of /dev/fuse in the server. */
const FUSE_FD = 3;
const PAUSE_NS = 200_000_000;
/**
 * How often the server is started. After that, and where it cannot be started at all, the holder ends too: the kernel
 * then refuses what programs ask (ENOTCONN), in place of letting them wait for ever, and the driver mounts anew.
 */
const LIVES = 32;

export function remoteMountSteps(program: Program, { at, argv }: RemoteMountPlan): void {
  const [holder, server, end] = [program.label(), program.label(), program.label()];
  const device = program.open("openat", [AT_FDCWD, "/dev/fuse", O_RDWR, 0], "open /dev/fuse");
  const options = `fd=${device},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other`;
  program.step("mount", [REMOTE_DRIVE, at, "fuse", MS.NOSUID | MS.NODEV, options], "mount the drive");
  program.step("clone", [SIGCHLD], "fork", { onValue: end, onZero: holder });

  program.place(holder);
  program.step("setsid", [], "start a session");
  program.step("chdir", ["/"], "leave the folder");
  program.step("dup3", [device, FUSE_FD, 0], "keep the device");
  program.step("close_range", [FUSE_FD + 1, 0xffffffff, 0], "let go of descriptors");
  for (let life = 0; life < LIVES; life++) {
    const waiting = program.label();
    program.step("clone", [SIGCHLD], "fork", { onError: waiting, onValue: waiting, onZero: server });
    program.place(waiting);
    program.step("wait4", [-1, 0, 0, 0], "wait", { onError: "ignore" });
    program.step("ppoll", [0, 0, program.words([0, PAUSE_NS]), 0, 0], "pause", { onError: "ignore" });
  }
  program.step("exit_group", [0], "end");

  program.place(server);
  program.step("prctl", [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0], "end with the holder");
  const [path = ""] = argv;
  program.step("execve", [path, program.texts(argv), program.texts([])], "start the server", { onError: "ignore" });
  program.step("kill", [0, SIGKILL], "end with the holder");

  program.place(end);
}
