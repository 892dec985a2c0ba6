/** The unmodified client of Jupyter kernels from PyPI, on the code interpreter of a real sandbox. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { LONG } from "../long.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";
import { printed } from "../sdk/place.ts";
import { environmentWith } from "../sdk/python-environment.ts";

const run = promisify(execFile);
const { start, stop, platform, create } = sandboxSuite();

describe("programs written for Jupyter kernels", { skip: machineSkip || (!LONG && "npm run test:long has it") }, () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-jupyter-"));
  before(() => start());
  after(async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("a program with the package of PyPI runs Python and JavaScript", async (t) => {
    const { python, missing } = await environmentWith(folder, join(import.meta.dirname, "requirements.txt"));
    if (missing !== null) return t.skip(missing);
    await create("mind", { runtime: { image: "service/code-interpreter", memory: 1024 } });
    const { url, apiKey } = platform();
    const env = { PATH: process.env.PATH, SERVER: `${url}/main/sandboxes/mind/port/8888`, TOKEN: apiKey };
    await run(python, [join(import.meta.dirname, "program.py")], { cwd: folder, env }).catch(printed);
  });
});
