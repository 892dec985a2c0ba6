import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { localDriverMissing } from "./machine.ts";
import { ownNetwork } from "./own-network.ts";

const network = localDriverMissing ?? ownNetwork();
const skip = typeof network === "string" ? network : false;

test("after kill -9 nothing passes until the rules are read, and in the end nothing stays", { skip }, async () => {
  assert.ok(typeof network !== "string");
  const child = spawn("unshare", [...network.args, process.execPath, "test/local/nat-crash-child.ts"], {
    stdio: "pipe",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      output += chunk;
    });
  const [code] = await once(child, "close");
  assert.equal(code, 0, output);
});
