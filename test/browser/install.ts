/**
 * The browser of the browser suites. Debian's headless shell is preferred, unpacked and not installed: it has no window
 * around its pages and needs a third of the CPU time. A machine without any Chromium gets one in CI, as root, from the
 * distribution. An apt that fails or takes too long leads to the machine's own Chromium, or to skipped suites.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { unpackedDebian } from "../debian-packages.ts";
import { findChromium, MISSING } from "./chromium.ts";

const UPDATE_MS = 60_000;
const INSTALL_MS = 240_000;
const SHELL_PACKAGES = ["chromium-headless-shell", "chromium-common"];

/** The value for BERTH_TEST_CHROMIUM: where it is, or `none`. */
export function provideChromium(files: readonly string[]): string {
  const isAsked = files.some((file) => /browser/.test(file));
  const mayChoose = isAsked && !process.env.BERTH_TEST_CHROMIUM;
  const found = findChromium() ?? (mayChoose ? installed() : null);
  if (found === null && isAsked) console.error(`Browser suites are skipped: ${MISSING}.`);
  return (found && mayChoose ? headlessShell() : null) ?? found ?? "none";
}

function installed(): string | null {
  if (process.env.CI !== "true" || process.getuid?.() !== 0) return null;
  console.error("Installing Chromium for the tests (apt-get install chromium)…");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = (timeout: number, ...args: string[]): boolean =>
    spawnSync("apt-get", args, { env, timeout, stdio: "ignore" }).status === 0;
  const isThere =
    apt(UPDATE_MS, "update", "-q") && apt(INSTALL_MS, "install", "-y", "-q", "--no-install-recommends", "chromium");
  return isThere ? findChromium() : null;
}

/** Its libraries are those of the Chromium that the machine has; where they do not fit, it does not start. */
function headlessShell(): string | null {
  const root = unpackedDebian("chromium", SHELL_PACKAGES);
  const program = join(root ?? "", "usr/lib/chromium/chromium-headless-shell");
  if (root === null || !existsSync(program)) return null;
  return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0 ? program : null;
}
