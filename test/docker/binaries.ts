/**
 * A Docker Engine for the suites of the Docker driver: that of the machine, or Debian's packages, unpacked and not
 * installed.
 */
import { spawnSync } from "node:child_process";
import { debianEnv, unpackedDebian } from "../debian-packages.ts";

const PACKAGES = ["docker.io", "containerd", "runc", "tini", "libdevmapper1.02.1"];

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
  return [given, "/"].find((root) => root && runs(root)) ?? null;
}

const runs = (root: string): boolean =>
  ["dockerd", "containerd", "runc"].every((program) => {
    const { status } = spawnSync(program, ["--version"], { env: debianEnv(root), stdio: "ignore" });
    return status === 0;
  });

function unpacked(): string | null {
  if (process.env.BERTH_TEST_DOCKER === "none" || process.getuid?.() !== 0) return null;
  const root = unpackedDebian("docker", PACKAGES);
  return root !== null && runs(root) ? root : null;
}
