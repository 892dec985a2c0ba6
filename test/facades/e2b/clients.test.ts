/** The unmodified clients of E2B, of the versions in the files beside this one, on real sandboxes. */
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { LONG } from "../../long.ts";
import { machineSkip, sandboxSuite } from "../../sandbox-suite.ts";
import { printed } from "../../sdk/place.ts";
import { environmentWith } from "../../sdk/python-environment.ts";

const run = promisify(execFile);
const { start, stop, platform } = sandboxSuite();

describe("programs written for E2B", { skip: machineSkip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-e2b-"));
  before(() => start());
  after(async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("a program with the npm package runs with other addresses", async (t) => {
    for (const name of ["package.json", "package-lock.json", "program.mjs"])
      cpSync(join(import.meta.dirname, name), join(folder, name));
    const npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
    const failed = await run("npm", npm, { cwd: folder }).then(
      () => null,
      (error: { stderr?: string }) => error.stderr ?? String(error),
    );
    if (failed !== null) return t.skip(`npm finds no registry with E2B's client: ${failed.slice(0, 200)}`);
    await run(process.execPath, ["program.mjs"], { cwd: folder, env: moved() }).catch(printed);
  });

  test("a program with the package of PyPI runs with other addresses", {
    skip: !LONG && "npm run test:long has it",
  }, async (t) => {
    const { python, missing } = await environmentWith(folder, join(import.meta.dirname, "requirements.txt"));
    if (missing !== null) return t.skip(missing);
    const program = join(import.meta.dirname, "program.py");
    await run(python, [program], { cwd: folder, env: moved() }).catch(printed);
  });
});

/** All that a program written for E2B is told of the other platform. */
function moved(): Record<string, string | undefined> {
  const { url, apiKey } = platform();
  return {
    ...{ PATH: process.env.PATH, HOSTS_BELOW: `localhost:${new URL(url).port}` },
    ...{ E2B_API_URL: `${url}/e2b`, E2B_SANDBOX_URL: `${url}/e2b`, E2B_API_KEY: apiKey },
  };
}
