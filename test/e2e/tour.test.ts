/** Runs the tour as a reader would: every `sh` block, in order, in one shell, beside a running server. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
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

const TOURS: Readonly<Record<string, readonly RegExp[]>> = {
  "README.md": [
    /"status":"DEPLOYED"/,
    /"content":"hello"/,
    /"object":"chat.completion"/,
    /^lab +/m,
    /sandbox 'lab' deleted/,
    /"summary":/,
  ],
  "docs/tour.md": [
    /^main +\* /m,
    /^reports +local +DEPLOYED/m,
    /sandbox 'demo-box' would be created/,
    /sandbox 'demo-box' created/,
    /hello from demo-box/,
    /"content":"hello from demo-box\\n"/,
    /demo-backup\.gz: \d+ rows/,
    /volume 'demo-disk' deleted/,
    /drive 'reports' deleted/,
  ],
};

for (const [page, answers] of Object.entries(TOURS)) {
  test(`every step of ${page} works as written`, { skip }, async () => {
    const home = mkdtempSync(join(folder, "home-"));
    const work = mkdtempSync(join(folder, "work-"));
    symlinkSync(join(ROOT, "bin"), join(work, "bin"));
    const dataDir = join(home, ".berth");
    const server = await startServer({ dataDir, env: { BERTH_ON_STOP: "kill" } });
    try {
      const text = readFileSync(join(ROOT, page), "utf8")
        .replaceAll("http://127.0.0.1:8080", server.url)
        // What the reader does in the project's folder happens in one of its own here, which npx does not know.
        .replaceAll("npx berth", "node bin/berth.js");
      // How to start and test it stands before the tour.
      const tour = text.slice(Math.max(0, text.indexOf("## Five minutes")));
      const blocks = [...tour.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? "");
      assert.ok(blocks.length > 5);
      const script = ["set -euo pipefail", ...blocks.map((block, index) => `echo '## ${index}'\n${block}`)].join("\n");
      const { status, stdout, stderr } = spawnSync("bash", ["-c", script], {
        cwd: work,
        encoding: "utf8",
        env: { PATH: process.env.PATH ?? "", HOME: home, BERTH_DATA: dataDir },
        timeout: 240_000,
      });
      assert.equal(status, 0, stdout + stderr);
      for (const said of answers) assert.match(stdout, said);
    } finally {
      await server.stop();
    }
  });
}
