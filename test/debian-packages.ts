/**
 * Programs of Debian packages for the tests, unpacked into a cache folder. Nothing is installed: a program that appears
 * on the machine would change what other suites find there.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const UPDATE_MS = 60_000;
const DOWNLOAD_MS = 180_000;
const CACHES = join(import.meta.dirname, "../node_modules/.cache");

/** The folder in which the packages are unpacked; null where Debian's archive cannot be reached. */
export function unpackedDebian(name: string, packages: readonly string[]): string | null {
  const cache = join(CACHES, `berth-test-${name}`);
  if (existsSync(cache)) return cache;
  if (process.platform !== "linux" || spawnSync("which", ["apt-get", "dpkg"]).status !== 0) return null;
  console.error(`Unpacking ${packages.join(", ")} for the tests (apt-get download)…`);
  const debs = mkdtempSync(join(tmpdir(), "berth-debs-"));
  const root = `${cache}.${process.pid}`;
  const run = (timeout: number, program: string, ...args: string[]): boolean =>
    spawnSync(program, args, { cwd: debs, timeout, stdio: "ignore" }).status === 0;
  try {
    const download = (): boolean => run(DOWNLOAD_MS, "apt-get", "download", "-q", ...packages);
    if (!download() && !(run(UPDATE_MS, "apt-get", "update", "-q") && download())) return null;
    mkdirSync(root, { recursive: true });
    for (const deb of readdirSync(debs)) if (!run(DOWNLOAD_MS, "dpkg", "-x", join(debs, deb), root)) return null;
    if (!existsSync(cache)) renameSync(root, cache); // another test file may have been first
    return cache;
  } finally {
    rmSync(debs, { recursive: true, force: true });
    rmSync(root, { recursive: true, force: true });
  }
}

/** Variables with which the programs of such a folder start; `/` is the machine itself. */
export const debianEnv = (root: string): Record<string, string> => ({
  PATH: [
    ...["usr/sbin", "usr/bin", "sbin", "bin"].map((dir) => join(root, dir)),
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  ].join(":"),
  ...(root === "/" ? {} : { LD_LIBRARY_PATH: globSync(join(root, "{usr/,}lib/*-linux-gnu")).join(":") }),
});
