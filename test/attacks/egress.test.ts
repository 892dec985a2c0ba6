import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

const TRIAL = "ip link set lo up && mount --bind /etc/resolv.conf /etc/resolv.conf";
const able = spawnSync("unshare", ["-n", "-m", "sh", "-c", TRIAL]).status === 0;
const skip = able ? false : "needs root, `unshare` and `ip`: run as root with util-linux and iproute2 to include it";

// Each child has network and mount namespaces of its own: its addresses and its resolv.conf are not this machine's.
for (const [title, file] of [
  ["no spelling, no name and no new interface leads a tenant to the machine itself", "egress-child.ts"],
  ["no name that changes its address leads a door of the platform to the machine itself", "rebinding-child.ts"],
] as const)
  test(title, { skip }, async (t) => {
    const child = spawn("unshare", ["-n", "-m", process.execPath, `test/attacks/${file}`], { stdio: "pipe" });
    t.after(() => child.kill("SIGKILL"));
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk;
      });
    }
    const [code] = await once(child, "close");
    assert.equal(code, 0, output);
  });
