import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { install } from "./source.ts";
import { currentRoot, installation, makeCurrent, sweep } from "./versions.ts";

const gitSkip = spawnSync("git", ["--version"]).status === 0 ? false : "git is not installed";
const folder = mkdtempSync(join(tmpdir(), "berth-source-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const origin = join(folder, "origin");
const base = join(folder, "base");
const noted: string[] = [];
const note = (text: string): void => void noted.push(text);

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
  const newest = await install(given, undefined, note);
  assert.equal(newest, join(base, "versions", `3.0.0-${git("rev-parse", "trunk").slice(0, 12)}`));
  assert.equal(versionIn(newest), "3.0.0");
  assert.deepEqual(
    readdirSync(newest).filter((name) => name.startsWith(".")),
    [],
  );
  assert.equal(versionIn(await install(given, "v2", note)), "2.0.0");
  await assert.rejects(install(given, "nothing", note), /has no branch, tag or commit 'nothing'/);
});

test("a version comes from a folder or an archive; what is none is refused and leaves nothing", async () => {
  const root = join(folder, "first");
  const source = join(folder, "source");
  writeVersion(root, "1.0.0");
  writeVersion(source, "4.0.0");
  const given = installation(root);
  assert.match(await install(given, source, note), /\/versions\/4\.0\.0-\d{14}$/);
  const archive = join(folder, "release.tgz");
  execFileSync("tar", ["-czf", archive, "-C", folder, "source"]);
  assert.equal(versionIn(await install(given, archive, note)), "4.0.0");
  const before = readdirSync(given.folder).sort();
  rmSync(join(source, "bin"), { recursive: true });
  await assert.rejects(install(given, source, note), /this is no Berth: it has no bin\/berth\.js/);
  await assert.rejects(install(given, join(folder, "missing"), note), /does not exist/);
  await assert.rejects(install(given, "v1", note), /is no git checkout/);
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
