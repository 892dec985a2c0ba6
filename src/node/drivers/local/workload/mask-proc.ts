/** Hides the files of /proc that tell or change the machine. */
import { existsSync } from "node:fs";
import type { Program } from "../calls/program.ts";
import { AT_FDCWD, MOUNT_ATTR } from "../calls/syscalls.ts";

const PROC_READ_ONLY = ["/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq"];
const PROC_HIDDEN_FILES = ["kcore", "keys", "key-users", "kmsg", "latency_stats", "sched_debug", "sysrq-trigger"];
const PROC_HIDDEN_DIRS = ["/proc/acpi", "/proc/asound", "/proc/scsi"];

/** Hides or write-protects the files of /proc that are not namespaced. */
export function maskProc(program: Program): void {
  const MS_BIND = 4096;
  const readOnly = program.words([MOUNT_ATTR.RDONLY, 0, 0, 0]);
  for (const path of PROC_READ_ONLY.filter((each) => existsSync(each))) {
    program.step("mount", [path, path, 0, MS_BIND, 0], `bind ${path}`);
    program.step("mount_setattr", [AT_FDCWD, path, 0, readOnly, 32], `protect ${path}`);
  }
  const files = ["timer_list", ...PROC_HIDDEN_FILES].map((name) => `/proc/${name}`);
  for (const path of files.filter((each) => existsSync(each))) {
    program.step("mount", ["/dev/null", path, 0, MS_BIND, 0], `hide ${path}`);
  }
  for (const path of PROC_HIDDEN_DIRS.filter((each) => existsSync(each))) {
    program.step("mount", ["tmpfs", path, "tmpfs", 1, "size=0k"], `hide ${path}`);
  }
}
