/** One file with everything it needs, as a project would be sent that was built before: it starts in a third of the time. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBun } from "../../src/lib/bun-program.ts";

export async function bundled(entry: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "bundle-"));
  try {
    const file = join(folder, "index.js");
    await promisify(execFile)(findBun() ?? assert.fail(), ["build", entry, "--target=node", `--outfile=${file}`]);
    return readFileSync(file, "utf8");
  } finally {
    rmSync(folder, { recursive: true });
  }
}
