/**
 * Berth as a stranger has it: the files of this tree in an empty folder, installed, and started with `npm start` under
 * an empty home folder. `npm test` makes one before anything else, and all of test/installed share its server; a file
 * that is run by itself makes its own.
 *
 * The packages are those that `npm ci` has just put into this checkout, linked instead of unpacked once more; npm then
 * runs the project's own scripts as it does after an installation.
 */
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Of the server's log; the rest is of no use to who reads it. */
const OUTPUT_CHARS_MAX = 50_000;
const CHECKOUT = join(import.meta.dirname, "../..");
/** Tells the files of test/installed about the server that runs already. */
export const SHARED_VARIABLE = "BERTH_TEST_INSTALLED";

export interface Installation {
  /** The project's folder. */
  root: string;
  /** The home folder of who started it. */
  home: string;
  url: string;
  apiKey: string;
}

export interface RunningInstallation extends Installation {
  /** The last that the server printed. */
  output(): string;
  stop(): Promise<void>;
}

/** The shared one, or one of the file's own, which ends with the file. */
export async function installation(): Promise<Installation> {
  const shared = process.env[SHARED_VARIABLE];
  if (shared) return JSON.parse(shared) as Installation;
  const own = await startInstallation();
  after(() => own.stop());
  return own;
}

/** The variables that the files of test/installed need, while their server runs; none when none of them is run. */
export async function shareInstallation(
  files: readonly string[],
): Promise<{ env: Record<string, string>; stop(): Promise<void> }> {
  if (!files.some((file) => dirname(file).endsWith("test/installed"))) return { env: {}, stop: async () => {} };
  const { stop, output: _, ...shared } = await startInstallation();
  return { env: { [SHARED_VARIABLE]: JSON.stringify(shared) }, stop };
}

async function startInstallation(): Promise<RunningInstallation> {
  const folder = mkdtempSync(join(tmpdir(), "berth-installed-"));
  const root = join(folder, "berth");
  const home = join(folder, "home");
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  try {
    mkdirSync(home);
    copyTree(root);
    execFileSync("npm", ["run", "prepare"], { cwd: root, env: strangersEnv({ home }), stdio: "pipe" });
    return await startTree(root, home, remove);
  } catch (error) {
    remove();
    throw error;
  }
}

/** What is committed, and what would be if it were committed now. */
function copyTree(root: string): void {
  const listed = spawnSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: CHECKOUT,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  // Without git, or where it does not trust the folder's owner, all that is there.
  const paths =
    listed.status === 0
      ? listed.stdout.split("\0").filter((path) => path !== "" && existsSync(join(CHECKOUT, path)))
      : readdirSync(CHECKOUT).filter((name) => name !== "node_modules" && name !== ".git");
  for (const path of paths) cpSync(join(CHECKOUT, path), join(root, path), { recursive: true });
  copyPackages(join(root, "node_modules"));
}

function copyPackages(target: string): void {
  const packages = readdirSync(join(CHECKOUT, "node_modules"))
    .filter((name) => name !== ".cache")
    .map((name) => join(CHECKOUT, "node_modules", name));
  mkdirSync(target);
  if (spawnSync("cp", ["-al", ...packages, target]).status === 0) return;
  // Links cannot lead to another file system, nor to what belongs to somebody else.
  rmSync(target, { recursive: true });
  mkdirSync(target);
  execFileSync("cp", ["-a", ...packages, target]);
}

/** Of a tree that is installed; `remove` is called when its server has ended. */
export async function startTree(root: string, home: string, remove: () => void): Promise<RunningInstallation> {
  const child = spawn("npm", ["start"], {
    cwd: root,
    env: strangersEnv({ home, PORT: "0" }),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const group = child.pid ?? 0;
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const kill = (): void => {
    try {
      process.kill(-group, "SIGKILL");
    } catch {
      // It has ended already.
    }
  };
  // Nothing outlives whoever started it, however that ends.
  process.once("exit", kill);
  void ended.then(() => process.off("exit", kill));
  const output = keptOutput(child);
  const url = await addressOf(child, output);
  const { apiKey } = JSON.parse(readFileSync(join(home, ".berth/credentials.json"), "utf8")) as { apiKey: string };
  return {
    root,
    home,
    url,
    apiKey,
    output,
    async stop() {
      if (child.exitCode !== null) console.error(`The installed server ended by itself:\n${output()}`);
      // Ends the workloads, too, which Ctrl-C would leave running.
      else
        await run("npm", ["run", "--silent", "berth", "--", "down", "--purge", "--yes"], {
          cwd: root,
          env: strangersEnv({ home }),
        }).catch(kill);
      await ended;
      remove();
    },
  };
}

/** The last of what a process prints. */
function keptOutput(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-OUTPUT_CHARS_MAX);
    });
  return () => text;
}

function addressOf(child: ChildProcess, output: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const url = /API {8}(\S+)\/v0[\s\S]*Ctrl-C/.exec(output())?.[1];
      if (url) resolve(url);
    };
    child.stdout?.on("data", look);
    child.stderr?.on("data", look);
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`npm start ended with ${code}: ${output()}`)));
  });
}

/** Nothing of whoever runs the tests: not their settings, nor the packages of this checkout. */
export function strangersEnv({ home, ...more }: { home: string } & Record<string, string>): Record<string, string> {
  const path = (process.env.PATH ?? "").split(":").filter((part) => !part.includes("node_modules"));
  return { PATH: path.join(":"), HOME: home, TZ: "UTC", ...more };
}
