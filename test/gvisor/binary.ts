/**
 * gVisor for the suites of grade vm-like: the operator's (BERTH_TEST_RUNSC), the machine's, or Debian's package unpacked
 * into a cache folder. Nothing is installed: other suites would find another machine.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findRunsc } from "../../src/node/drivers/local/gvisor/runsc.ts";

const DOWNLOAD_MS = 120_000;
const CACHE = join(import.meta.dirname, "../../node_modules/.cache/berth-test-runsc");
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
/** Older packages of Debian know no systrap. */
const SOURCE = `deb [signed-by=${KEYRING}] http://deb.debian.org/debian bookworm-backports main\n`;

export const RUNSC_MISSING =
  "needs root and gVisor: run as root where runsc is installed, or where apt-get can download Debian's package";

/** The value for BERTH_TEST_RUNSC: the path of runsc, or `none`. */
export function provideRunsc(files: readonly string[]): string {
  if (!files.some((file) => /gvisor/.test(file))) return process.env.BERTH_TEST_RUNSC ?? "";
  const found = testRunsc() ?? unpacked();
  if (found === null) console.error(`Suites of gVisor are skipped: ${RUNSC_MISSING}.`);
  return found ?? "none";
}

/** Null where there is none, or where this user may not use it. */
export function testRunsc(): string | null {
  const given = process.env.BERTH_TEST_RUNSC;
  if (given === "none" || process.getuid?.() !== 0 || process.platform !== "linux") return null;
  return (given ? findRunsc(given) : null) ?? findRunsc() ?? findRunsc(join(CACHE, "usr/bin/runsc"));
}

function unpacked(): string | null {
  if (process.env.BERTH_TEST_RUNSC === "none" || process.getuid?.() !== 0 || !existsSync(KEYRING)) return null;
  if (spawnSync("which", ["apt-get", "dpkg"]).status !== 0) return null;
  console.error("Unpacking gVisor for the tests (apt-get download runsc)…");
  const dir = mkdtempSync(join(tmpdir(), "berth-runsc-"));
  const root = `${CACHE}.${process.pid}`;
  for (const name of ["lists/partial", "archives/partial"]) mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, "sources.list"), SOURCE);
  const own = { "Dir::Etc::sourcelist": "sources.list", "Dir::State": ".", "Dir::Cache": "." };
  const options = Object.entries(own).flatMap(([name, path]) => ["-o", `${name}=${join(dir, path)}`]);
  const run = (program: string, ...args: string[]): boolean =>
    spawnSync(program, args, { cwd: dir, timeout: DOWNLOAD_MS, stdio: "ignore" }).status === 0;
  const apt = (...args: string[]): boolean =>
    run("apt-get", "-q", ...options, "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User=root", ...args);
  try {
    if (!apt("update") || !apt("download", "runsc")) return null;
    mkdirSync(root, { recursive: true });
    for (const deb of globSync("*.deb", { cwd: dir })) if (!run("dpkg", "-x", deb, root)) return null;
    rmSync(CACHE, { recursive: true, force: true });
    renameSync(root, CACHE);
    return testRunsc();
  } finally {
    rmSync(dir, { recursive: true, force: true });
    rmSync(root, { recursive: true, force: true });
  }
}
