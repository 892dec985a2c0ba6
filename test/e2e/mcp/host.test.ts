/** An MCP server at a host name of its own, for a client that knows nothing but that address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientCredentialsProvider } from "@modelcontextprotocol/client";
import { Agent, fetch } from "undici";
import { connectModern } from "../../mcp-suite.ts";
import { startTestPlatform } from "../../platform.ts";

/** Every name is this machine's. */
const dispatcher = new Agent({
  connect: { lookup: (_name, _options, done) => done(null, [{ address: "127.0.0.1", family: 4 }]) },
});
const anywhere = ((url: string | URL, init: object) =>
  fetch(url, { ...init, dispatcher })) as unknown as typeof globalThis.fetch;

test("a client finds its token from the host name alone", async () => {
  await using platform = await startTestPlatform({ config: { domain: "berth.test", region: "eu" } });
  const body = { metadata: { name: "notes" }, spec: { runtime: { image: "service/mcp-memory:latest" } } };
  const { body: made } = await platform.call("POST", "/functions", { body });
  const { port } = new URL(platform.url);
  assert.equal(made.metadata.url, `http://mcp-notes-main.eu.berth.test:${port}`);
  const { body: machine } = await platform.call("POST", "/service_accounts", {
    workspace: "main",
    body: { name: "robot" },
  });
  const authProvider = new ClientCredentialsProvider({
    clientId: machine.client_id,
    clientSecret: machine.client_secret,
    expectedIssuer: platform.url,
  });
  await using server = await connectModern(new URL(`${made.metadata.url}/mcp`), { authProvider, fetch: anywhere });
  assert.match(await server.say("remember", { thread: "t", content: "tea" }), /messageCount/);
  const foreign = await anywhere(`${platform.url}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${machine.client_id}:${machine.client_secret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", resource: "http://elsewhere.test/mcp" }),
  });
  assert.deepEqual([foreign.status, ((await foreign.json()) as { error: string }).error], [400, "invalid_target"]);
  await dispatcher.close();
});
