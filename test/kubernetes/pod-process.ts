/**
 * A container of the test's kubelet: real processes in mount and process namespaces of their own, with the machine's
 * programs as the image's files. The network is the machine's: every pod has a loopback address of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface ContainerOptions {
  /** Empty folder of this container. */
  dir: string;
  /** Files of the image beside the machine's programs: path inside, path on the machine. */
  files: Record<string, string>;
  mounts: { from: string; at: string; readOnly: boolean }[];
  command: string[];
  env: Record<string, string>;
  hostname: string;
  workingDir?: string | undefined;
  /** `uid:gid`; default: root. */
  user?: string | undefined;
}

export interface ContainerEnd {
  exitCode: number;
}

const SHARED = ["/usr", "/etc", "/dev"];
const LINKS = ["bin", "sbin", "lib", "lib64"];
const FOLDERS = ["proc", "tmp", "root", "run", "var/log", "var/tmp", "berth", "opt"];

export class PodProcess {
  readonly #child: ChildProcess;
  readonly logFile: string;
  readonly ended: Promise<ContainerEnd>;

  constructor(options: ContainerOptions) {
    const root = join(options.dir, "root");
    for (const name of [...FOLDERS, ...SHARED]) mkdirSync(join(root, name), { recursive: true });
    for (const name of LINKS) symlinkSync(`usr/${name}`, join(root, name));
    this.logFile = join(options.dir, "log");
    const log = openSync(this.logFile, "a");
    this.#child = spawn(
      "unshare",
      [...NAMESPACES, "sh", "-e", "-c", scriptOf(root, options), "pod", ...options.command],
      {
        stdio: ["ignore", log, log],
        env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ...options.env },
      },
    );
    this.ended = once(this.#child, "exit").then(([code, signal]) => ({
      exitCode: typeof code === "number" ? code : signal === "SIGKILL" ? 137 : 143,
    }));
  }

  /** To the first process of the container. */
  signal(signal: "SIGTERM" | "SIGKILL"): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    if (signal === "SIGKILL") return void this.#child.kill("SIGKILL"); // --kill-child passes it on
    try {
      const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
      if (first) process.kill(Number(first), signal);
    } catch {
      // The container has ended.
    }
  }
}

const NAMESPACES = [
  ...(process.getuid?.() === 0 ? [] : ["--map-root-user"]),
  ...["--mount", "--pid", "--uts", "--fork", "--kill-child=SIGKILL"],
];

function scriptOf(root: string, { files, mounts, hostname, workingDir = "/", user = "0:0" }: ContainerOptions): string {
  const lines = SHARED.map((path) => `mount --rbind ${path} '${root}${path}'`);
  lines.push(`mount -t proc proc '${root}/proc'`, `hostname '${hostname}'`);
  for (const [at, from] of Object.entries(files)) {
    mkdirSync(join(root, at, ".."), { recursive: true });
    writeFileSync(join(root, at), "");
    lines.push(`mount --bind '${from}' '${root}${at}'`);
  }
  for (const { from, at, readOnly } of mounts) {
    lines.push(`mkdir -p '${root}${at}'`, `mount --bind '${from}' '${root}${at}'`);
    if (readOnly) lines.push(`mount -o remount,bind,ro '${root}${at}'`);
  }
  return [
    ...lines,
    `cd '${root}'`,
    `exec chroot --userspec=${user} '${root}' /bin/sh -c 'cd "$0" && exec "$@"' '${workingDir}' "$@"`,
  ].join("\n");
}
