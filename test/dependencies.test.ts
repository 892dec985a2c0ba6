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
}

const ROOT = join(import.meta.dirname, "..");
/** Packages that may run a program while they are installed. */
const WITH_INSTALL_SCRIPT: readonly string[] = [];
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall"];
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
    const names = new Set([...flagged, ...running].map((path) => path.replace(/^.*node_modules\//, "")));
    assert.deepEqual([...names].sort(), [...WITH_INSTALL_SCRIPT].sort());
  });
});
