/** Runs the tour as a reader would: every `sh` block, in order, in one shell, beside a running server. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadConfig } from "../../src/config.ts";
import { probeIsolation } from "../../src/operator/runtime.ts";
import { startServer } from "../berth-process.ts";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "berth-tour-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const { grade } = await probeIsolation(loadConfig({ flags: { data: folder }, env: {} }));
const skip =
  grade === "none" && "this machine cannot isolate workloads, and the tour makes a sandbox; see `berth doctor`";

test("every step of the tour works as written", { skip }, async () => {
  const dataDir = join(folder, "data");
  const work = join(folder, "work");
  mkdirSync(work);
  symlinkSync(join(ROOT, "bin"), join(work, "bin"));
  const server = await startServer({ dataDir, env: { BERTH_ON_STOP: "kill" } });
  try {
    const tour = readFileSync(join(ROOT, "docs/tour.md"), "utf8").replaceAll("http://127.0.0.1:8080", server.url);
    const blocks = [...tour.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? "");
    assert.ok(blocks.length > 5);
    const script = ["set -euo pipefail", ...blocks.map((block, index) => `echo '## ${index}'\n${block}`)].join("\n");
    const { status, stdout, stderr } = spawnSync("bash", ["-c", script], {
      cwd: work,
      encoding: "utf8",
      env: { PATH: process.env.PATH ?? "", HOME: folder, BERTH_DATA: dataDir },
      timeout: 120_000,
    });
    assert.equal(status, 0, stdout + stderr);
    for (const said of [
      /^main +\* /m,
      /^reports +local +DEPLOYED/m,
      /sandbox 'demo-box' would be created/,
      /sandbox 'demo-box' created/,
      /hello from demo-box/,
      /"content":"hello from demo-box\\n"/,
      /demo-backup\.gz: \d+ rows/,
      /volume 'demo-disk' deleted/,
      /drive 'reports' deleted/,
    ])
      assert.match(stdout, said);
  } finally {
    await server.stop();
  }
});
