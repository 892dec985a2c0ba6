/** An ext4 file system in a sparse file, mounted through a loop device. Volumes and the roots of workloads are such. */
import { execFile } from "node:child_process";
import { readFileSync, truncateSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Time limit of a tool. Making a file system is quick even on a slow disk, since the file is sparse. */
const TOOL_TIMEOUT_MS = 60_000;
/** Tools are searched where distributions install them, independent of the server's PATH. */
export const TOOL_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

export const runTool = (name: string, args: readonly string[]): Promise<{ stdout: string }> =>
  run(name, args, { env: TOOL_ENV, timeout: TOOL_TIMEOUT_MS });

/**
 * Makes the image.
 *   -m 0        no blocks are reserved for root
 *   root_owner  the workload's root owns it
 *   lazy        tables are not written, which keeps the file sparse
 */
export async function makeImage(image: string, sizeMb: number, more: readonly string[] = []): Promise<void> {
  await writeFile(image, "", { mode: 0o600 });
  truncateSync(image, sizeMb * 1024 * 1024);
  const lazy = "root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1,nodiscard";
  await runTool("mkfs.ext4", ["-q", "-F", "-m", "0", "-E", lazy, ...more, image]);
}

/**
 * Mounts the image. An image that is mounted elsewhere shares its loop device and its file system.
 *   discard        blocks freed inside are freed in the sparse file, so that its allocation shows the use
 *   noinit_itable  the kernel does not write the tables in the background either
 */
export const mountImage = (image: string, at: string): Promise<unknown> =>
  runTool("mount", ["-t", "ext4", "-o", "loop,nosuid,nodev,discard,noinit_itable", image, at]);

/** Mounts an image that was cleanly copied; nothing is written to it. */
export const mountToRead = (image: string, at: string): Promise<unknown> =>
  runTool("mount", ["-t", "ext4", "-o", "loop,ro,noload,nosuid,nodev,noexec", image, at]);

export const unmountImage = async (at: string): Promise<void> => {
  await runTool("umount", ["-l", at]);
};

/** What the table of mounts calls a drive of another node. */
export const REMOTE_DRIVE = "berth-drive";

/** A server killed between mount and unmount leaves its mount in the host's own namespace, perhaps frozen. */
export async function unmountLeftovers(dir: string): Promise<void> {
  for (const { at, source } of mountsOfHost()) {
    // Workloads that outlive a server use its drives of other nodes.
    if (!at.startsWith(`${dir}/`) || source === REMOTE_DRIVE) continue;
    await runTool("fsfreeze", ["--unfreeze", at]).catch(() => {}); // not frozen
    await unmountImage(at);
  }
}

/** Name of the block device that is mounted there, such as `loop7`. */
export const deviceAt = (path: string): string | null =>
  mountsOfHost()
    .find(({ at }) => at === path)
    ?.source.replace("/dev/", "") ?? null;

function mountsOfHost(): { at: string; source: string }[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line) => {
      const [left = "", right = ""] = line.split(" - ");
      const [at, source] = [left.split(" ")[4], right.split(" ")[1]];
      return at && source ? [{ at: at.replaceAll("\\040", " "), source }] : [];
    })
    .reverse();
}
