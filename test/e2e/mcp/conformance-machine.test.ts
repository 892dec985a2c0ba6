/** The official conformance suite through the gateway: to code, to a bridged command, to the hub and to a sandbox. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { LONG } from "../../long.ts";
import { bundled } from "../../mcp/bundle.ts";
import { conformance, REVISIONS, type Revision, relayTo } from "../../mcp/conformance.ts";
import { assertConforms, EXPECTED } from "../../mcp/expectations.ts";
import { mcpSuite } from "../../mcp-suite.ts";
import { machineSkip } from "../../sandbox-suite.ts";

const NEWEST = REVISIONS.at(-1);

const project = async (entry: string): Promise<Record<string, string>> => ({
  "index.js": await bundled(entry),
  "package.json": '{"type":"module"}',
});

describe("conformance through the gateway", { skip: machineSkip }, () => {
  const suite = mcpSuite();
  before(async () => {
    await suite.start();
    await suite.deploy("code", { runtime: { memory: 512, type: "mcp" } }, await project("test/mcp/everything-http.ts"));
    await suite.deploy(
      "bridged",
      { runtime: { memory: 2048, type: "mcp", transport: "stdio" } },
      await project("test/mcp/everything-stdio.ts"),
    );
    const volume = { metadata: { name: "papers" }, spec: { size: 64 } };
    assert.equal((await suite.platform().call("POST", "/volumes", { body: volume })).status, 200);
    await suite.deploy("files", {
      runtime: { memory: 256, image: "service/mcp-filesystem:latest" },
      volumes: [{ name: "papers", mountPath: "/papers" }],
    });
    const sandbox = { metadata: { name: "desk" }, spec: { runtime: { memory: 512 } } };
    const made = await suite.platform().call("POST", "/sandboxes", { body: sandbox });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  });
  after(async () => {
    await suite.platform().call("DELETE", "/sandboxes/desk");
    await suite.stop();
  });

  async function conforms(path: string, revision: Revision, expected: keyof typeof EXPECTED): Promise<void> {
    const { url, apiKey } = suite.platform();
    await using relay = await relayTo(new URL(`${url}/main/${path}/mcp`), apiKey);
    const look = async (): Promise<void> =>
      assertConforms(await conformance(relay.url, revision), EXPECTED[expected][revision]);
    // The package waits for frames for a moment only, which a busy machine may exceed. A real fault fails twice.
    await look().catch(look);
  }

  for (const revision of REVISIONS) {
    // The gateway takes code like the bridge, and the server of the hub is made like that of a sandbox.
    const skip = LONG || revision === NEWEST ? false : "a repetition; runs with --long";
    test(`code that serves everything, ${revision}`, { skip }, () =>
      conforms("functions/code", revision, "everything"),
    );
    test(`a command behind the bridge, ${revision}`, () => conforms("functions/bridged", revision, "bridged"));
    test(`a server of the hub, ${revision}`, { skip }, () => conforms("functions/files", revision, "toolsOnly"));
    test(`the server of a sandbox, ${revision}`, () => conforms("sandboxes/desk", revision, "toolsOnly"));
  }

  test("a page of another origin gets nowhere", async () => {
    for (const path of ["functions/code", "functions/files", "sandboxes/desk"]) {
      const answer = await fetch(`${suite.platform().url}/main/${path}/mcp`, {
        method: "POST",
        headers: { origin: "http://evil.example.com", "content-type": "application/json" },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      });
      assert.equal(answer.status, 401);
    }
  });
});
