/** Runs a program of this folder in network and mount namespaces of its own, which play a machine; fails when the program does. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { localDriverMissing } from "../local/machine.ts";
import { ownNetwork } from "../local/own-network.ts";

const network = localDriverMissing ?? ownNetwork();

/** Why this machine cannot play another one; false where it can. */
export const ownMachineMissing: string | false = typeof network === "string" ? network : false;

interface Program {
  name: string;
  args?: string[];
  env?: Record<string, string>;
  /** Without it the machine has no nft, and its workloads have the egress proxy only. */
  hasNat?: boolean;
}

/** A folder that goes with the test. */
export function testFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-world-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function runOnOwnMachine(t: TestContext, { name, args = [], env = {}, hasNat = true }: Program) {
  assert.ok(typeof network !== "string");
  const namespaces = ["-m", ...(hasNat ? network.args : ["-n"])];
  const program = join(import.meta.dirname, name);
  const child = spawn("unshare", [...namespaces, process.execPath, program, ...args], {
    env: { ...process.env, ...env },
    stdio: "pipe",
  });
  t.after(() => child.kill());
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      output += chunk;
    });
  const [code] = await once(child, "close");
  assert.equal(code, 0, output);
}
