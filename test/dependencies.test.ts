/**
 * What `npm ci` brings onto a machine is what the lock file pins: by content, from the registry that the machine is
 * set up for, and without running anything.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

interface Locked {
  version?: string;
  integrity?: string;
  resolved?: string;
  link?: boolean;
  hasInstallScript?: boolean;
  engines?: { node?: string };
}

const ROOT = join(import.meta.dirname, "..");
/** Packages that may run a program while they are installed. */
const WITH_INSTALL_SCRIPT: readonly string[] = [];
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall"];
/** Packages that ask for a newer Node than the lowest of ours. npm warns about each, and the README says so. */
const WITH_NEWER_NODE: readonly string[] = ["undici"];
/** A digest of 64 bytes in base64. */
const SHA512 = /^sha512-[A-Za-z0-9+/]{86}==$/;
/** What a range of versions never has: the address of a file, a folder, an archive or a repository. */
const ADDRESS = /[/:]/;

const read = (path: string): unknown => JSON.parse(readFileSync(join(ROOT, path), "utf8"));
const { lockfileVersion, packages } = read("package-lock.json") as {
  lockfileVersion: number;
  packages: Record<string, Locked>;
};
const locked = Object.entries(packages).filter(([path]) => path !== "");

describe("the lock file", () => {
  test("pins every package by its content", () => {
    assert.equal(lockfileVersion, 3);
    assert.ok(locked.length > 0);
    for (const [path, { integrity = "", version = "", link }] of locked) {
      assert.match(integrity, SHA512, `${path} has no sha512 digest`);
      assert.match(version, /^\d/, `${path} has no version`);
      assert.notEqual(link, true, `${path} is a link to another folder`);
    }
  });

  // Without addresses npm asks the registry that it is set up for, and the digest decides whether the answer is right.
  test("names no address to load a package from", () => {
    for (const [path, { resolved }] of locked) assert.equal(resolved, undefined, `${path} is loaded from ${resolved}`);
    const manifest = read("package.json") as Record<string, Record<string, string> | undefined>;
    for (const list of ["dependencies", "devDependencies", "optionalDependencies"])
      for (const [name, range] of Object.entries(manifest[list] ?? {}))
        assert.doesNotMatch(range, ADDRESS, `${name} is loaded from ${range}`);
  });

  test("lets no other package run a program while it is installed than those that are known", () => {
    const flagged = locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
    // The flag comes from the registry; what is installed here says it itself. Other platforms' packages are not here.
    const installed = locked.map(([path]) => path).filter((path) => existsSync(join(ROOT, path, "package.json")));
    assert.ok(installed.length > 0, "nothing is installed: run npm ci");
    const running = installed.filter((path) => {
      const { scripts = {} } = read(join(path, "package.json")) as { scripts?: Record<string, string> };
      return INSTALL_SCRIPTS.some((name) => scripts[name]) || existsSync(join(ROOT, path, "binding.gyp"));
    });
    const names = new Set([...flagged, ...running].map(nameOf));
    assert.deepEqual([...names].sort(), [...WITH_INSTALL_SCRIPT].sort());
  });

  // npm prints EBADENGINE for each that does not; the Node that Berth brings along runs them all the same.
  test("has only packages that accept the lowest Node that ours does", () => {
    const lowest = lowestOf(packages[""]?.engines?.node ?? "");
    const refusing = locked
      .filter(([, { engines }]) => engines?.node && !accepts(engines.node, lowest))
      .map(([path, { version, engines }]) => [nameOf(path), version, engines?.node]);
    assert.deepEqual(
      refusing.filter(([name = ""]) => !WITH_NEWER_NODE.includes(name)),
      [],
    );
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    for (const [name = "", , range] of refusing)
      assert.ok(readme.includes(`${name} asks for Node ${range?.replace(">=", "≥ ")}`), `the README tells of ${name}`);
  });
});

const nameOf = (path: string): string => path.replace(/^.*node_modules\//, "");

type Version = readonly [major: number, minor: number, patch: number];

function lowestOf(range: string): Version {
  const [, major, minor, patch] = /^(?:>=|\^)?\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(range) ?? [];
  assert.ok(major !== undefined, `this test does not read the range ${range}`);
  return [Number(major), Number(minor ?? 0), Number(patch ?? 0)];
}

/** Reads the ranges that are in the lock file: `*`, `>=` and `^`, several of them with `||`. */
const accepts = (range: string, version: Version): boolean =>
  range.split("||").some((text) => {
    const part = text.trim();
    if (part === "*") return true;
    const low = lowestOf(part);
    return compare(version, low) >= 0 && (part.startsWith(">=") || version[0] === low[0]);
  });

const compare = (a: Version, b: Version): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
