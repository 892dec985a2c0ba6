/** The official conformance suite against every MCP server that the platform is, and against the ways to one. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startMcpBridge } from "../../../src/sandboxd/mcp/bridge.ts";
import { LONG } from "../../long.ts";
import { bundled } from "../../mcp/bundle.ts";
import { allScenarios, conformance, REVISIONS, type Revision, relayTo, scenariosOf } from "../../mcp/conformance.ts";
import { assertConforms, EXPECTED, NOT_RUN } from "../../mcp/expectations.ts";
import { startTestPlatform } from "../../platform.ts";
import { machineSkip } from "../../sandbox-suite.ts";
import { skip as daemonSkip, startSandboxd } from "../../sandboxd-harness.ts";

/** A rule that withholds nothing, for which all messages are read all the same. */
const EVERYTHING = { callers: ["*"], allow: ["*"] };

/** Where this machine can run sandboxes, `conformance-machine` meets the same servers behind the gateway. */
const double = machineSkip || LONG ? false : "runs in conformance-machine; alone with --long";

test("every scenario of the suite is run, or has a reason not to be", async () => {
  const known = new Set([...REVISIONS.flatMap(scenariosOf), ...Object.keys(NOT_RUN)]);
  assert.deepEqual(
    (await allScenarios()).filter((name) => !known.has(name)),
    [],
  );
});

for (const revision of REVISIONS)
  describe(`conformance with ${revision}`, () => {
    test("the server of a sandbox", { skip: daemonSkip || double }, async () => {
      await using daemon = await startSandboxd();
      await using relay = await relayTo({ socketPath: daemon.config.apiSocket, path: "/mcp" });
      assertConforms(await conformance(relay.url, revision), EXPECTED.toolsOnly[revision]);
    });

    test("a server that the platform answers itself, also as one of several and through a gate", async () => {
      await using platform = await startTestPlatform();
      const spec = { runtime: { image: "service/mcp-memory:latest" } };
      const made = await platform.call("POST", "/functions", { body: { metadata: { name: "memory" }, spec } });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const url = new URL(`${platform.url}/main/functions/memory/mcp`);
      await using relay = await relayTo(url, platform.apiKey);
      assertConforms(await conformance(relay.url, revision), EXPECTED.toolsOnly[revision]);
      const all = {
        metadata: { name: "all" },
        spec: { servers: [{ name: "memory" }], tools: { access: [EVERYTHING] } },
      };
      const served = await platform.call("POST", "/functions", { body: all });
      assert.equal(served.status, 200, JSON.stringify(served.body));
      await using over = await relayTo(new URL(`${platform.url}/main/functions/all/mcp`), platform.apiKey);
      assertConforms(await conformance(over.url, revision), EXPECTED.toolsOnly[revision]);
    });

    test("a server on standard streams, through the bridge", { skip: daemonSkip || double }, () =>
      bridged([], revision, "bridged"),
    );
  });

// Before, it is the same as any other.
test("a server on standard streams that only knows the handshake, for clients that do not", { skip: daemonSkip }, () =>
  bridged(["handshake"], "2026-07-28", "handshake"),
);

async function bridged(args: string[], revision: Revision, expected: keyof typeof EXPECTED): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "conformance-bridge-"));
  const file = join(folder, "index.mjs");
  writeFileSync(file, await bundled("test/mcp/everything-stdio.ts"));
  const argv = [process.execPath, file, ...args];
  const bridge = await startMcpBridge({ argv, host: "127.0.0.1", port: 0 });
  const { port } = bridge.server.address() as AddressInfo;
  try {
    assertConforms(await conformance(`http://127.0.0.1:${port}/mcp`, revision), EXPECTED[expected][revision]);
  } finally {
    const closed = once(bridge.server, "close");
    bridge.stop();
    await closed;
    rmSync(folder, { recursive: true });
  }
}
