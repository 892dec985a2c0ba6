import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { localDriverMissing } from "./machine.ts";

const has = (tool: string): boolean => {
  try {
    execFileSync(tool, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
const skip = localDriverMissing ?? (has("nft") ? false : "needs nft: install nftables to include it");

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
