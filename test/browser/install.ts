/**
 * A Chromium for the browser suites where the machine has none: as root in CI it is installed from the distribution.
 * An apt that fails or takes too long leads to skipped suites and to nothing else.
 */
import { spawnSync } from "node:child_process";
import { findChromium, MISSING } from "./chromium.ts";

const UPDATE_MS = 60_000;
const INSTALL_MS = 240_000;

/** The value for BERTH_TEST_CHROMIUM: where it is, or `none`. */
export function provideChromium(files: readonly string[]): string {
  if (!files.some((file) => /browser/.test(file))) return findChromium() ?? "none";
  const found = findChromium() ?? installed();
  if (found === null) console.error(`Browser suites are skipped: ${MISSING}.`);
  return found ?? "none";
}

function installed(): string | null {
  const mayInstall = process.env.CI === "true" && process.getuid?.() === 0;
  if (!mayInstall || process.env.BERTH_TEST_CHROMIUM === "none") return null;
  console.error("Installing Chromium for the tests (apt-get install chromium)…");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = (timeout: number, ...args: string[]): boolean =>
    spawnSync("apt-get", args, { env, timeout, stdio: "ignore" }).status === 0;
  const isThere =
    apt(UPDATE_MS, "update", "-q") && apt(INSTALL_MS, "install", "-y", "-q", "--no-install-recommends", "chromium");
  return isThere ? findChromium() : null;
}
