/** Where a new version comes from, and its installation in a folder beside the others, with its packages. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, createReadStream, existsSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { removeTree } from "../../lib/remove-tree.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { packageVersion } from "../version.ts";
import { beginInstall, endInstall, type Installation } from "./versions.ts";

const exec = promisify(execFile);
const ARCHIVE = /\.(tgz|tar\.gz|tar)$/;
/** Folders of a development checkout that are not part of a version. */
const PACKAGES = "node_modules";
const LEFT_OUT: readonly string[] = [".git", PACKAGES, "versions"];
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const COMMIT_CHARS = 12;
const SEE_HELP = "see `berth upgrade --help`";

export interface Source {
  /** Folder name of this version in `versions/`. */
  id: string;
  /** The same for the same files: an installation that was only checked is found again by it. */
  origin: string;
  /** Fills an existing empty folder with files. */
  fill(folder: string): Promise<void>;
}

/** Installs the version and returns its folder. Removes an incomplete folder after a failure. */
export async function install({ folder }: Installation, source: Source, note: (text: string) => void): Promise<string> {
  const root = makeFolder(folder, source.id);
  try {
    beginInstall(root);
    note(`installing ${source.id} into ${root}`);
    await source.fill(root);
    for (const file of ["bin/berth.js", "package.json", "src/main.ts"])
      if (!existsSync(join(root, file))) throw new UsageError(`this is no Berth: it has no ${file}.`, SEE_HELP);
    await installPackages(root);
    endInstall(root, source.origin);
    return root;
  } catch (error) {
    await removeTree(root);
    throw error;
  }
}

/** Makes a new folder: a version that is already there may be running and is never touched. */
function makeFolder(folder: string, id: string): string {
  mkdirSync(folder, { recursive: true });
  for (let copy = 1; ; copy += 1) {
    const root = join(folder, copy === 1 ? id : `${id}-${copy}`);
    try {
      mkdirSync(root);
      return root;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/** A text that begins with a dot or a slash, or is named like an archive, is a path; any other is a git ref. */
export function sourceOf({ base }: Pick<Installation, "base">, wanted: string | undefined): Promise<Source> {
  if (wanted !== undefined && (/^[./~]/.test(wanted) || ARCHIVE.test(wanted))) return fromPath(resolve(wanted));
  return fromGit(base, wanted);
}

async function fromPath(path: string): Promise<Source> {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new UsageError(`${path} does not exist.`, SEE_HELP);
  const now = new Date().toISOString().replace(/\D/g, "").slice(0, 14);
  if (stat.isDirectory()) {
    if (!existsSync(join(path, "package.json"))) throw new UsageError(`${path} has no package.json.`, SEE_HELP);
    const id = `${packageVersion(path)}-${now}`;
    return { id, origin: `folder ${path} ${fingerprint(path)}`, fill: (folder) => copyFolder(path, folder) };
  }
  if (!ARCHIVE.test(path)) throw new UsageError(`${path} is neither a folder nor an archive (.tgz, .tar).`, SEE_HELP);
  const id = `${basename(path).replace(ARCHIVE, "")}-${now}`;
  // Archives of npm, git and most other tools have one top-level folder.
  const fill = (folder: string) =>
    run("tar", ["-xf", path, "-C", folder, "--strip-components=1", "--no-same-owner"], dirname(path));
  return { id, origin: `archive ${await digest(path)}`, fill };
}

async function digest(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** Changes whenever a file of the version is added, removed or written. */
function fingerprint(folder: string): string {
  const hash = createHash("sha256");
  const visit = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const { size, mtimeMs } = lstatSync(join(path, entry.name));
      const isLeftOut = path === folder && LEFT_OUT.includes(entry.name);
      // Packages count as one: whether they are there, and when they were installed.
      if (!isLeftOut || entry.name === PACKAGES) hash.update(`${join(path, entry.name)} ${size} ${mtimeMs}\n`);
      if (entry.isDirectory() && !isLeftOut) visit(join(path, entry.name));
    }
  };
  visit(folder);
  return hash.digest("hex");
}

/**
 * Copies a folder. Existing packages are hard-linked, so that a version can be brought to a machine without a network.
 */
async function copyFolder(from: string, to: string): Promise<void> {
  const names = readdirSync(from).filter((name) => !LEFT_OUT.includes(name));
  for (const name of names) cpSync(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
  const packages = join(from, PACKAGES);
  if (!existsSync(packages)) return;
  const copied = join(to, PACKAGES);
  await run("cp", ["-al", packages, copied], from).catch(async () => {
    // Hard links fail across file systems and for files of other users.
    await removeTree(copied);
    await run("cp", ["-a", packages, copied], from);
  });
}

/** From the checkout's remote: a branch, a tag or a commit; absent: the branch that it follows. */
async function fromGit(base: string, wanted: string | undefined): Promise<Source> {
  const git = async (...args: string[]): Promise<string> =>
    (await exec("git", ["-C", base, ...args], { maxBuffer: OUTPUT_BYTES_MAX })).stdout.trim();
  const resolved = (name: string): Promise<string | null> =>
    git("rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`).catch(() => null);
  const remote = await git("remote").then(
    (names) => (names.split("\n").includes("origin") ? "origin" : names.split("\n")[0]),
    () => null,
  );
  if (remote === null)
    throw new UsageError(`${base} is no git checkout.`, "name a folder or an archive: berth upgrade --to PATH");
  if (remote) await run("git", ["-C", base, "fetch", "--quiet", "--tags", remote], base);
  const names =
    wanted === undefined ? ["@{upstream}"] : [`refs/remotes/${remote}/${wanted}`, `refs/tags/${wanted}`, wanted];
  for (const name of names) {
    const commit = await resolved(name);
    if (commit === null) continue;
    const { version } = JSON.parse(await git("show", `${commit}:package.json`)) as { version: string };
    return {
      id: `${version}-${commit.slice(0, COMMIT_CHARS)}`,
      origin: `commit ${commit}`,
      async fill(folder) {
        const archive = join(folder, ".git.tar");
        await git("archive", "--format=tar", `--output=${archive}`, commit);
        await run("tar", ["-xf", archive, "-C", folder], folder);
        await removeTree(archive);
      },
    };
  }
  throw new UsageError(
    wanted === undefined
      ? `the branch of ${base} follows none of a remote.`
      : `${base} has no branch, tag or commit '${wanted}'.`,
    "name one with --to",
  );
}

/** Like `npm ci`, without development packages. */
async function installPackages(root: string): Promise<void> {
  if (existsSync(join(root, PACKAGES))) await run("npm", ["run", "--silent", "prepare"], root);
  else await run("npm", ["ci", "--omit=dev", "--no-audit", "--no-fund"], root);
}

async function run(program: string, args: readonly string[], cwd: string): Promise<void> {
  await exec(program, args, { cwd, maxBuffer: OUTPUT_BYTES_MAX }).catch((error: Error & { stderr?: string }) => {
    const said = error.stderr?.trim().split("\n").slice(-10).join("\n") || error.message;
    throw new UsageError(`\`${program} ${args[0]}\` failed: ${said}`, "nothing was changed");
  });
}
