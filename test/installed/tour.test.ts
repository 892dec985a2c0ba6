/** Does what a reader of the README and the tour does: every `sh` block, in order, in one shell, in the project's folder. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { installation, strangersEnv } from "./installation.ts";
import { workloadsSkip } from "./isolation.ts";

const { root, home, url } = await installation();
const TOURS: Readonly<Record<string, readonly RegExp[]>> = {
  "README.md": [
    /"status":"DEPLOYED"/,
    /"content":"hello"/,
    /"object":"chat.completion"/,
    /You said: hello/,
    /^lab +/m,
    /sandbox 'lab' deleted/,
    /^NAME +USD +SHARE +TREND\n/m,
    /^timestamp,workspace,.*usage,cost$/m,
    // The answer of the model is counted before the reader has it. Other files use other workspaces of this account.
    /^[^,\n]+,main,model,echo,/m,
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
  test(`every step of ${page} works as written`, { skip: workloadsSkip }, async () => {
    const written = readFileSync(join(root, page), "utf8").replaceAll("http://127.0.0.1:8080", url);
    // How to install, start and test Berth stands before the tour: that has been done.
    const tour = written.slice(Math.max(0, written.indexOf("## Five minutes")));
    const blocks = [...tour.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? "");
    assert.ok(blocks.length > 5);
    const script = ["set -euo pipefail", ...blocks.map((block, index) => `echo '## ${index}'\n${block}`)].join("\n");
    const shell = spawn("bash", ["-c", script], {
      cwd: root,
      env: strangersEnv({ home }),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = new Promise((resolve) => shell.once("close", resolve));
    const [said, complained] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    assert.equal(await ended, 0, said + complained);
    for (const answer of answers) assert.match(said, answer);
  });
}
