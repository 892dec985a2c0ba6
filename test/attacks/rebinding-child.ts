/**
 * Run by egress.test.ts in network and mount namespaces of its own. Every record of the platform that holds an address
 * gets a name that resolves to a public address first and to the machine afterwards. A service of the machine listens
 * on all addresses: the attack has won when the service gets a connection.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fakeDriver } from "../fake-driver.ts";
import { Browser } from "../identity/browser.ts";
import { connectMcp } from "../mcp-suite.ts";
import { type Answer, startTestPlatform } from "../platform.ts";
import { AGENT_IMAGE, agentWorld, until } from "../triggers/agent-world.ts";
import { ip, NOBODYS, startChangingNames } from "./changing-names.ts";

const METADATA = "169.254.169.254";
/** Names alternate between two answers, so each door meets both of them. */
const ROUNDS = 2;

ip("link", "set", "lo", "up");
ip("address", "add", `${METADATA}/32`, "dev", "lo");
let reached: string[] = [];
const service = createServer((socket) => {
  reached.push(socket.localAddress ?? "");
  socket.on("error", () => {});
  socket.end("HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret");
});
service.listen(0, "0.0.0.0");
await once(service, "listening");
const { port } = service.address() as AddressInfo;

using names = await startChangingNames((name) => {
  if (name.startsWith("meta")) return [METADATA];
  // A client that tries one address after the other would reach the second one.
  return name.startsWith("both") ? [NOBODYS, "127.0.0.1"] : ["127.0.0.1"];
});
const at = (name: string): string => `http://${name}.test:${port}`;
const PREFIXES = ["loop", "meta", "both"] as const;

await using world = await agentWorld();
const registries = PREFIXES.map((prefix) => `${prefix}-registry.test:${port}`).join(",");
await using platform = await startTestPlatform({
  driver: fakeDriver(world.machine),
  config: {
    private_connections: "false",
    registries,
    registry_plain_http: registries,
    // The operator chooses identity providers, and may have one on a private address, but none at the cloud's.
    identity_providers: JSON.stringify([
      {
        id: "corp",
        name: "Corp",
        issuer: at("meta-idp").replace("http:", "https:"),
        client_id: "berth",
        client_secret: "s",
      },
    ]),
  },
});

async function make(path: string, name: string, spec: object): Promise<Answer["body"]> {
  const { status, body } = await platform.call("POST", path, { workspace: "main", body: { metadata: { name }, spec } });
  assert.equal(status, 200, `${path} ${name}: ${JSON.stringify(body)}`);
  return body;
}

const bearer = { authorization: `Bearer ${platform.apiKey}` };

async function chat(model: string): Promise<void> {
  const answer = await fetch(`${platform.url}/main/models/${model}/v1/chat/completions`, {
    ...{ method: "POST", headers: { ...bearer, "content-type": "application/json" } },
    body: JSON.stringify({ messages: [{ role: "user", content: "hi" }] }),
  });
  assert.ok(answer.status >= 400, `${model}: ${answer.status}`);
  assert.doesNotMatch(await answer.text(), /secret/);
}

/** Each door: makes its record with an address, and returns one use of it. */
const DOORS: Record<string, (name: string) => Promise<() => Promise<void>>> = {
  async provider(name) {
    const spec = { integration: "openai", secret: { apiKey: "k" }, config: { baseUrl: at(name) } };
    await make("/integrations/connections", name, spec);
    await make("/models", name, { integrationConnections: [name], runtime: { type: "openai", model: "m" } });
    return () => chat(name);
  },
  async guardrail(name) {
    const guardrails = { webhook: { url: at(name), secret: "a secret of the webhook" } };
    await make("/models", name, { runtime: { type: "mock", model: "echo" }, guardrails });
    return () => chat(name);
  },
  async integration(name) {
    return mcpTool(name, { integration: "google-drive", config: { tokenUrl: at(`${name}-token`), baseUrl: at(name) } });
  },
  async api(name) {
    return mcpTool(name, { integration: "github", config: { baseUrl: at(name) } });
  },
  async registry(name) {
    let count = 0;
    return async () => {
      count += 1;
      const image = `${name}.test:${port}/acme/tool:${count}`;
      const body = { metadata: { name: `${name}-${count}` }, spec: { runtime: { image, memory: 128 } } };
      const { body: made } = await platform.call("POST", "/sandboxes", { workspace: "main", body });
      assert.notEqual(made.status, "DEPLOYED");
    };
  },
  async callback(name) {
    const configuration = { callbackUrl: at(name), retry: 2 };
    const runtime = { image: AGENT_IMAGE, memory: 128 };
    await make("/agents", name, { runtime, triggers: [{ id: "later", type: "http-async", configuration }] });
    return async () => {
      const before = world.requests.length;
      await fetch(`${platform.url}/main/agents/${name}/run?async=true`, { method: "POST", headers: bearer, body: "x" });
      await until("the agent is asked", () => world.requests.length > before);
    };
  },
};

async function mcpTool(
  name: string,
  connection: { integration: string; config: object },
): Promise<() => Promise<void>> {
  const secret = { CLIENT_ID: "id", CLIENT_SECRET: "s", REFRESH_TOKEN: "r", GITHUB_TOKEN: "t" };
  await make("/integrations/connections", name, { ...connection, secret });
  await make("/functions", name, { type: "mcp", integrationConnections: [name], runtime: { type: "mcp" } });
  return async () => {
    await using server = await connectMcp(new URL(`${platform.url}/main/functions/${name}/mcp`), {
      requestInit: { headers: bearer },
    });
    const { tools } = await server.client.listTools();
    const { name: tool, inputSchema } = tools[0] ?? assert.fail(`${name} has no tools`);
    const args = Object.fromEntries((inputSchema.required ?? []).map((argument) => [argument, "x"]));
    const answer = await server.client.callTool({ name: tool, arguments: args });
    assert.match(JSON.stringify(answer), /"isError":true/);
  };
}

async function signIn(): Promise<void> {
  const query = { client_id: "service", response_type: "code", redirect_uri: "http://127.0.0.1:43210/callback" };
  const challenge = { code_challenge: "x".repeat(43), code_challenge_method: "S256" };
  const browser = new Browser(platform.url);
  const page = await browser.visit(`/oauth/authorize?${new URLSearchParams({ ...query, ...challenge })}`);
  await browser.submit(page, {}, {}, 1);
}

try {
  const uses: [string, () => Promise<void>][] = [];
  for (const [door, open] of Object.entries(DOORS))
    for (const prefix of PREFIXES) uses.push([`${prefix}-${door}`, await open(`${prefix}-${door}`)]);
  uses.push(["meta-idp", signIn]);
  for (const [name, use] of uses) {
    const resolved = (): number => Math.max(...["", "-token"].map((end) => names.asked.get(`${name}${end}.test`) ?? 0));
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = resolved();
      await use();
      await until(
        `${name} is resolved in round ${round}: a door that stays shut proves nothing`,
        () => resolved() > before,
      );
    }
  }
  await pause(0);
  assert.deepEqual(reached, []);
  // The service is there: whoever dials it reaches it.
  await fetch(`http://127.0.0.1:${port}/`);
  assert.equal(reached.length, 1);
} finally {
  reached = [];
  service.close();
}
