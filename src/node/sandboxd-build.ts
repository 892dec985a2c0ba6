/**
 * Compiles the daemon of the sandboxes into one executable with Bun. Run by hand it builds for this machine; the local
 * driver calls `buildSandboxd` at first use and keeps the result by the digest of its sources.
 *
 *   node src/node/sandboxd-build.ts [OUTFILE]
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { findBun } from "../lib/bun-program.ts";
import { putProgram } from "../lib/disk/put-program.ts";
import { ROOT } from "../lib/root.ts";

const ENTRY = "src/sandboxd/main.ts";
const SOURCES = [
  "src/sandboxd/**/*.{ts,py,cjs}",
  "src/unpack/**/*.ts",
  "src/contract/sandbox-wire.ts",
  "src/lib/**/*.ts",
  "src/node/sandboxd-build.ts",
];
/** Packages that are compiled into the executable. */
const PACKAGES = ["yauzl"];
const BUILD_TIMEOUT_MS = 120_000;

export type SandboxdTarget = `bun-linux-${"x64" | "arm64"}${"" | "-musl"}`;

export interface BuildOptions {
  outFile: string;
  /** Default: this machine's architecture, glibc. */
  target?: SandboxdTarget;
}

/** Changes whenever the executable would. */
export function sandboxdVersion(): string {
  const digest = createHash("sha256");
  const files = globSync(SOURCES, { cwd: ROOT }).filter((file) => !file.endsWith(".test.ts"));
  for (const file of files.sort())
    digest
      .update(file)
      .update("\0")
      .update(readFileSync(join(ROOT, file)));
  const require = createRequire(import.meta.url);
  for (const name of PACKAGES) digest.update(readFileSync(require.resolve(`${name}/package.json`)));
  return digest.digest("hex").slice(0, 16);
}

/** Builds beside the target and renames, so that nobody ever starts half an executable. */
export async function buildSandboxd({ outFile, target = hostTarget() }: BuildOptions): Promise<{ version: string }> {
  const bun = findBun();
  if (!bun)
    throw new Error(`Bun is not installed for ${process.platform}-${process.arch}: npm install --include=optional`);
  const version = sandboxdVersion();
  const unfinished = unfinishedAt(outFile);
  const defines = { SANDBOXD_VERSION: version, SANDBOXD_BUILD_TIME: new Date().toISOString() };
  // Files that a tenant leaves in the daemon's folder must neither configure it nor leak into its environment.
  const isolated = ["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"];
  const args = [
    "build",
    ENTRY,
    "--compile",
    "--minify",
    "--bytecode",
    "--splitting",
    "--format=esm",
    ...isolated,
    `--target=${target}`,
    `--outfile=${unfinished}`,
  ];
  for (const [name, value] of Object.entries(defines)) args.push("--define", `${name}=${JSON.stringify(value)}`);
  try {
    await promisify(execFile)(bun, args, { cwd: ROOT, timeout: BUILD_TIMEOUT_MS });
    chmodSync(unfinished, 0o755);
    renameSync(unfinished, outFile);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return { version };
}

/**
 * The executable from the folder, put there when it is missing. It is compiled once per installation and copied from
 * there, so that a second data folder on the same machine does not compile it again.
 */
export async function cachedSandboxd(folder: string, target: SandboxdTarget = hostTarget()): Promise<string> {
  const name = `sandboxd-${target.replace(/^bun-/, "")}-${sandboxdVersion()}`;
  const outFile = join(folder, name);
  if (existsSync(outFile)) return outFile;
  const shared = join(ROOT, "node_modules/.cache/berth", name);
  try {
    if (!existsSync(shared)) {
      await buildSandboxd({ outFile: shared, target });
      forgetOldBuilds(dirname(shared));
    }
    if (outFile !== shared) copyWhole(shared, outFile);
  } catch (error) {
    // An installation that cannot be written to, such as one of another user.
    if (!["EACCES", "EROFS", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await buildSandboxd({ outFile, target });
  }
  return outFile;
}

/** Each has a hundred megabytes, and every change of the sources makes another one. */
const BUILDS_KEPT = 3;

export function forgetOldBuilds(folder: string): void {
  const builds = readdirSync(folder)
    .filter((name) => /^sandboxd-.*-[0-9a-f]{16}$/.test(name))
    .map((name) => ({
      path: join(folder, name),
      atMs: statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    .sort((a, b) => b.atMs - a.atMs);
  for (const { path } of builds.slice(BUILDS_KEPT)) rmSync(path, { force: true });
}

function copyWhole(from: string, to: string): void {
  const unfinished = unfinishedAt(to);
  putProgram(from, unfinished);
  renameSync(unfinished, to);
}

/** Where the work is done until it is whole; what builds that were killed have left there is removed. */
function unfinishedAt(outFile: string): string {
  const folder = dirname(outFile);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    const pid = /^sandboxd-.*\.(\d+)\.new$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true });
  }
  return `${outFile}.${process.pid}.new`;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

const hostTarget = (): SandboxdTarget => (process.arch === "arm64" ? "bun-linux-arm64" : "bun-linux-x64");

if (import.meta.main) {
  const outFile = resolve(process.argv[2] ?? "dist/sandboxd");
  const { version } = await buildSandboxd({ outFile });
  console.log(`${outFile} (${version})`);
}
