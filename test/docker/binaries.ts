/**
 * A Docker Engine for the suites of the Docker driver: that of the machine, or Debian's packages unpacked into a cache
 * folder. They are not installed: iptables and a running Docker would change what other suites find on the machine.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PACKAGES = ["docker.io", "containerd", "runc", "tini", "libdevmapper1.02.1"];
const UPDATE_MS = 60_000;
const DOWNLOAD_MS = 180_000;
const CACHE = join(import.meta.dirname, "../../node_modules/.cache/berth-test-docker");

export const DOCKER_MISSING =
  "needs root and a Docker Engine: run as root where dockerd is installed, or where apt-get can download Debian's docker.io";

/** The value for BERTH_TEST_DOCKER: a folder with unpacked packages, `/` for the machine's own engine, or `none`. */
export function provideDocker(files: readonly string[]): string {
  if (!files.some((file) => /docker/.test(file))) return process.env.BERTH_TEST_DOCKER ?? "";
  const found = findDocker() ?? unpacked();
  if (found === null) console.error(`Suites of the Docker driver are skipped: ${DOCKER_MISSING}.`);
  return found ?? "none";
}

/** Null where there is none, or where this user may not start it. */
export function findDocker(): string | null {
  const given = process.env.BERTH_TEST_DOCKER;
  if (given === "none" || process.getuid?.() !== 0 || process.platform !== "linux") return null;
  return [given, "/", CACHE].find((root) => root && runs(root)) ?? null;
}

/** Variables with which the programs of that folder start. */
export const dockerEnv = (root: string): Record<string, string> => ({
  PATH: [
    ...["usr/sbin", "usr/bin"].map((dir) => join(root, dir)),
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  ].join(":"),
  ...(root === "/" ? {} : { LD_LIBRARY_PATH: globSync(join(root, "{usr/,}lib/*-linux-gnu")).join(":") }),
});

const runs = (root: string): boolean =>
  ["dockerd", "containerd", "runc"].every((program) => {
    const { status } = spawnSync(program, ["--version"], { env: dockerEnv(root), stdio: "ignore" });
    return status === 0;
  });

function unpacked(): string | null {
  if (process.env.BERTH_TEST_DOCKER === "none" || process.getuid?.() !== 0 || process.platform !== "linux") return null;
  if (spawnSync("which", ["apt-get", "dpkg"]).status !== 0) return null;
  console.error("Unpacking Docker for the tests (apt-get download docker.io)…");
  const debs = mkdtempSync(join(tmpdir(), "berth-docker-debs-"));
  const root = `${CACHE}.${process.pid}`;
  const run = (timeout: number, program: string, ...args: string[]): boolean =>
    spawnSync(program, args, { cwd: debs, timeout, stdio: "ignore" }).status === 0;
  try {
    const download = (): boolean => run(DOWNLOAD_MS, "apt-get", "download", "-q", ...PACKAGES);
    if (!download() && !(run(UPDATE_MS, "apt-get", "update", "-q") && download())) return null;
    mkdirSync(root, { recursive: true });
    for (const deb of readdirSync(debs)) if (!run(DOWNLOAD_MS, "dpkg", "-x", join(debs, deb), root)) return null;
    rmSync(CACHE, { recursive: true, force: true });
    renameSync(root, CACHE);
    return existsSync(CACHE) && runs(CACHE) ? CACHE : null;
  } finally {
    rmSync(debs, { recursive: true, force: true });
    rmSync(root, { recursive: true, force: true });
  }
}
