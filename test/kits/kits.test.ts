/**
 * Every kit below examples/, deployed with `berth deploy` and packages of a registry: a thread of several messages, a
 * call of the MCP server's tool, and code that runs in a sandbox.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { deploySuite } from "../deploy-suite.ts";
import { LONG } from "../long.ts";
import type { UpstreamServer } from "../models/upstream-server.ts";
import { machineSkip } from "../sandbox-suite.ts";
import { startProvider } from "./tool-calling-provider.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");
const KITS = readdirSync(EXAMPLES).filter((name) => name.startsWith("kit-"));
/** What npm and pip say when they reach no registry. */
const NO_REGISTRY =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|NewConnectionError|CERTIFICATE|SELF_SIGNED|Temporary failure/;

test("there is a kit for every framework of the documentation", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/kits.md"), "utf8");
  for (const kit of KITS) assert.ok(page.includes(`\`${kit}\``), `docs/kits.md does not name ${kit}`);
});

test("a kit whose model is missing says how to make it, and its page makes the model first", async () => {
  const { explained } = (await import(`${join(EXAMPLES, "kit-vercel-ai")}/berth.js`)) as {
    explained(message: string): string;
  };
  assert.match(explained("404 Model chat does not exist."), /Make a model called chat, .*docs\/kits\.md.*MODEL=NAME/);
  assert.equal(explained("Model other does not exist."), "Model other does not exist.");
  const page = readFileSync(join(import.meta.dirname, "../../docs/kits.md"), "utf8");
  assert.match(page, /```sh\nberth apply[^`]*kind: Model\nmetadata: \{name: chat\}[^`]*berth new kit-/);
});

test("the page of each kit makes the model that the kit asks", () => {
  for (const kit of KITS) {
    const page = readFileSync(join(EXAMPLES, kit, "README.md"), "utf8");
    assert.match(page, /```sh\n[^`]*^berth model create chat --set spec\.runtime\.type=mock$[^`]*^berth deploy$/m, kit);
  }
});

describe("kits", { skip: (!LONG && "npm run test:long has it") || machineSkip }, () => {
  const suite = deploySuite({ idle_after: "300", pool_size: "0" });
  const { berth, call, ask } = suite;
  let provider: UpstreamServer;
  before(async () => {
    await suite.start();
    provider = await startProvider();
    const connection = { integration: "openai", secret: { apiKey: "k" }, config: { baseUrl: provider.baseUrl } };
    const made = [
      await call("POST", "/integrations/connections", { body: { metadata: { name: "own" }, spec: connection } }),
      await call("POST", "/models", {
        body: {
          metadata: { name: "chat" },
          spec: { runtime: { type: "openai", model: "chat" }, integrationConnections: ["own"] },
        },
      }),
    ];
    for (const { status, body } of made) assert.equal(status, 200, JSON.stringify(body));
    await berth(["deploy", join(EXAMPLES, "mcp-hello")]);
  });
  after(async () => {
    for (const { metadata } of (await call("GET", "/sandboxes")).body.data)
      await call("DELETE", `/sandboxes/${metadata.name}`);
    await suite.stop();
    await provider[Symbol.asyncDispose]();
  });

  for (const kit of KITS)
    test(`${kit} remembers its thread, calls an MCP tool and runs code in a sandbox`, async (t) => {
      const failed = await berth(["deploy", join(EXAMPLES, kit)]).then(
        () => null,
        (error: { stderr?: string }) => String(error.stderr ?? error),
      );
      if (failed !== null && NO_REGISTRY.test(failed))
        return t.skip(`no registry is reachable from a build; set build_env_file: ${failed.slice(-300)}`);
      assert.equal(failed, null);
      const say = async (inputs: string, thread: string): Promise<string> => {
        const headers = { "x-service-thread-id": thread };
        const answer = await ask(kit, { method: "POST", headers, body: JSON.stringify({ inputs }) });
        const text = await answer.text();
        assert.equal(answer.status, 200, text);
        return (JSON.parse(text) as { output: string }).output;
      };
      await say("My name is Ada.", "t1");
      assert.match(await say("What is my name?", "t1"), /Ada/);
      assert.match(await say("What is my name?", "t2"), /unknown/);
      assert.match(await say("Please greet her.", "t1"), /Hello, Ada!/);
      assert.match(await say("Please compute it.", "t1"), /42000/);
      const { body } = await call("GET", `/agents/${kit}/threads/t1`);
      assert.equal(body.messages.length, 8);
    });
});
