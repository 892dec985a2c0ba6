/**
 * A tree of files that an attack must leave as it is: every byte, name, mode, owner and time. A changed extended attribute
 * shows in the time of the last change.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Canary {
  readonly dir: string;
  readonly #before: string[];

  constructor(parent = tmpdir()) {
    this.dir = mkdtempSync(join(parent, "canary-"));
    mkdirSync(join(this.dir, "folder/deeper"), { recursive: true });
    writeFileSync(join(this.dir, "precious"), "precious");
    writeFileSync(join(this.dir, "folder/deeper/precious"), "deep", { mode: 0o640 });
    linkSync(join(this.dir, "precious"), join(this.dir, "folder/again"));
    symlinkSync("precious", join(this.dir, "alias"));
    this.#before = describe(this.dir);
  }

  assertUntouched(message?: string): void {
    assert.deepEqual(describe(this.dir), this.#before, message);
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** One line per file; access times are left out, because looking changes them. */
function describe(dir: string): string[] {
  const lines: string[] = [];
  const look = (path: string): void => {
    const { mode, uid, gid, size, nlink, mtimeMs, ctimeMs } = lstatSync(path);
    const kind = mode & 0o170000;
    const content =
      kind === 0o100000
        ? createHash("sha256").update(readFileSync(path)).digest("hex")
        : kind === 0o120000
          ? readlinkSync(path)
          : "";
    lines.push([path, mode.toString(8), uid, gid, size, nlink, mtimeMs, ctimeMs, content].join(" "));
    if (kind === 0o040000) for (const name of readdirSync(path).sort()) look(join(path, name));
  };
  look(dir);
  return lines;
}
