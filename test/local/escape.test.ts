/** Every attempt to get out of a workload, on every grade of isolation that this machine gives. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { escapes } from "./escape-table.ts";
import { localDriverMissing, localGrades } from "./machine.ts";

const UNPRIVILEGED = { uid: 1000, gid: 1000 };

if (localDriverMissing) test("escape", { skip: localDriverMissing }, () => {});
else {
  for (const grade of localGrades) escapes(grade);

  const skip = process.getuid?.() === 0 ? false : "the grade without root is tried above";
  test("escape from a workload of a server without root", { skip }, async (t) => {
    const child = spawn(process.execPath, ["test/local/escape-user.ts"], { ...UNPRIVILEGED, stdio: "pipe" });
    t.after(() => child.kill("SIGKILL"));
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
    const [code] = await once(child, "close");
    assert.equal(code, 0, output);
  });
}
