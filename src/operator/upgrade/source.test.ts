import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { install, sourceOf } from "./source.ts";
import { removeUnfinishedVersions } from "./unfinished.ts";
import {
  beginInstall,
  currentRoot,
  findInstalled,
  type Installation,
  installation,
  makeCurrent,
  sweep,
} from "./versions.ts";

const gitSkip = spawnSync("git", ["--version"]).status === 0 ? false : "git is not installed";
const folder = mkdtempSync(join(tmpdir(), "berth-source-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const origin = join(folder, "origin");
const base = join(folder, "base");
const noted: string[] = [];
const note = (text: string): void => void noted.push(text);
const installed = async (given: Installation, wanted: string | undefined): Promise<string> =>
  install(given, await sourceOf(given, wanted), note);

const git = (...args: string[]): string =>
  execFileSync("git", ["-C", origin, "-c", "user.name=a", "-c", "user.email=a@example.test", ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();

/** What makes a folder a Berth, without packages. */
function writeVersion(root: string, version: string): void {
  const described = { name: "berth", version, private: true };
  const files = {
    "bin/berth.js": "",
    "src/main.ts": "",
    "package.json": JSON.stringify(described),
    "package-lock.json": JSON.stringify({ ...described, lockfileVersion: 3, packages: { "": described } }),
  };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
}

const versionIn = (root: string): string =>
  (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;

test("a version comes from the remote of the checkout, with its packages installed", { skip: gitSkip }, async () => {
  writeVersion(origin, "1.0.0");
  git("init", "--quiet", "--initial-branch=trunk");
  git("add", ".");
  git("commit", "--quiet", "--message=one");
  execFileSync("git", ["clone", "--quiet", origin, base]);
  writeVersion(origin, "2.0.0");
  git("commit", "--quiet", "--all", "--message=two");
  git("tag", "v2");
  writeVersion(origin, "3.0.0");
  git("commit", "--quiet", "--all", "--message=three");

  const given = installation(base);
  const newest = await installed(given, undefined);
  assert.equal(newest, join(base, "versions", `3.0.0-${git("rev-parse", "trunk").slice(0, 12)}`));
  assert.equal(versionIn(newest), "3.0.0");
  assert.deepEqual(
    readdirSync(newest).filter((name) => name.startsWith(".")),
    [".origin"],
  );
  assert.equal(versionIn(await installed(given, "v2")), "2.0.0");
  await assert.rejects(installed(given, "nothing"), /has no branch, tag or commit 'nothing'/);
});

test("a version comes from a folder or an archive; what is none is refused and leaves nothing", async () => {
  const root = join(folder, "first");
  const source = join(folder, "source");
  writeVersion(root, "1.0.0");
  writeVersion(source, "4.0.0");
  const given = installation(root);
  assert.match(await installed(given, source), /\/versions\/4\.0\.0-\d{14}$/);
  const archive = join(folder, "release.tgz");
  execFileSync("tar", ["-czf", archive, "-C", folder, "source"]);
  assert.equal(versionIn(await installed(given, archive)), "4.0.0");
  const before = readdirSync(given.folder).sort();
  rmSync(join(source, "bin"), { recursive: true });
  await assert.rejects(installed(given, source), /this is no Berth: it has no bin\/berth\.js/);
  await assert.rejects(installed(given, join(folder, "missing")), /does not exist/);
  await assert.rejects(installed(given, "v1"), /is no git checkout/);
  assert.deepEqual(readdirSync(given.folder).sort(), before);
});

test("one version is current; the others go unless they are used", async () => {
  const root = join(folder, "second");
  writeVersion(root, "1.0.0");
  const given = installation(root);
  const [a, b, c] = ["a", "b", "c"].map((id) => join(given.folder, id)) as [string, string, string];
  for (const each of [a, b, c]) writeVersion(each, "2.0.0");
  assert.deepEqual(installation(a), given);
  assert.equal(currentRoot(given), root);
  makeCurrent(given, a);
  assert.equal(currentRoot(given), a);
  await sweep(given, [b]);
  assert.deepEqual(
    [a, b, c].map((each) => existsSync(each)),
    [true, true, false],
  );
  makeCurrent(given, root);
  assert.equal(currentRoot(given), root);
});

test("a version that was only checked is found again, unless its files have changed or a server uses it", async () => {
  const root = join(folder, "third");
  const source = join(folder, "new");
  writeVersion(root, "1.0.0");
  writeVersion(source, "5.0.0");
  const given = installation(root);
  const checked = await installed(given, source);
  const again = async (used: string[] = []): Promise<string | null> =>
    findInstalled(given, (await sourceOf(given, source)).origin, used);
  assert.equal(await again(), checked);
  assert.equal(await again([checked]), null);
  beginInstall(checked);
  assert.equal(await again(), null, "half of a version is none");
  await removeUnfinishedVersions(given);
  assert.equal(existsSync(checked), false);
  const whole = await installed(given, source);
  await removeUnfinishedVersions(given);
  assert.equal(await again(), whole);
  writeFileSync(join(source, "src/main.ts"), "changed");
  assert.equal(await again(), null);
});
