import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { addressesMissing, localDriverMissing } from "./machine.ts";

/** Where the driver looks, whatever the PATH of the tests. */
const has = (tool: string): boolean =>
  ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"].some((dir) =>
    existsSync(join(dir, tool)),
  );
const toolMissing = has("nft") ? false : "needs nft: install nftables to include it";
const skip = localDriverMissing ?? (addressesMissing || toolMissing);

test("workloads have a network of their own, with nothing private in reach", { skip }, async () => {
  // In a network namespace that plays the machine, so that the real one's network is left alone.
  const child = spawn("unshare", ["-n", process.execPath, "test/local/nat-child.ts"], { stdio: "pipe" });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk;
    });
  }
  const [code] = await once(child, "close");
  assert.equal(code, 0, output);
});
