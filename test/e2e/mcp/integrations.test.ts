/**
 * A customer's users connect their accounts with a third party: the six steps from a link on a page to an MCP server that
 * works with their data, with a real authorization server and the official client.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Clock } from "../../../src/lib/time/clock.ts";
import { HOUR_MS } from "../../../src/lib/time/clock.ts";
import { closeAtEnd } from "../../closing.ts";
import { testDatabases } from "../../databases.ts";
import { makeUser } from "../../identities.ts";
import { Browser } from "../../identity/browser.ts";
import { type Connected, connectMcp, connectModern } from "../../mcp-suite.ts";
import { startTestPlatform, type TestPlatform } from "../../platform.ts";
import { CLIENT, startThirdParty, type ThirdParty } from "../../third-party.ts";

/** Tokens of the third party live an hour; this makes the platform think that it is later. */
let skewMs = 0;
const clock: Clock = { now: () => Date.now() + skewMs };

let party: ThirdParty;
let backend: Backend;
const databases = await testDatabases();
before(async () => {
  backend = await startBackend();
  party = await startThirdParty(`${backend.url}/callback`);
});
after(() => databases.stop());

interface Backend {
  url: string;
  /** Where the next user's connection is made. */
  platform: TestPlatform | null;
  /** What step 4 gave, by user. */
  tokens: Map<string, { access_token: string; refresh_token: string; expires_in: number }>;
}

/** The customer's own server: it sends people to the identity provider and stores what comes of it. */
async function startBackend(): Promise<Backend> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  closeAtEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  const made: Backend = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    platform: null,
    tokens: new Map(),
  };
  const redirect_uri = `${made.url}/callback`;
  server.on("request", async (req, res) => {
    const url = new URL(req.url ?? "/", made.url);
    const user = url.searchParams.get("user") ?? url.searchParams.get("state") ?? "";
    if (url.pathname === "/connect") {
      const query = new URLSearchParams({
        client_id: CLIENT.id,
        redirect_uri,
        scope: "openid files",
        response_type: "code",
        access_type: "offline",
        state: user,
      });
      res.writeHead(302, { location: `${party.authorizeUrl}?${query}` }).end();
      return;
    }
    const form = new URLSearchParams({
      code: url.searchParams.get("code") ?? "",
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      redirect_uri,
      grant_type: "authorization_code",
    });
    const answer = await fetch(party.tokenUrl, { method: "POST", body: form });
    const tokens = (await answer.json()) as { access_token: string; refresh_token: string; expires_in: number };
    made.tokens.set(user, tokens);
    const stored = await storeConnection(made.platform ?? assert.fail(), user, tokens.refresh_token);
    res.writeHead(stored ? 200 : 500).end();
  });
  return made;
}

async function storeConnection(platform: TestPlatform, user: string, refreshToken: string): Promise<boolean> {
  const post = (path: string, body: unknown) =>
    fetch(`${platform.url}/v0${path}`, {
      method: "POST",
      headers: {
        "x-service-authorization": `Bearer ${platform.apiKey}`,
        "x-service-workspace": "main",
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
  const connection = await post("/integrations/connections", {
    metadata: { name: `drive-${user}`, displayName: `Drive of ${user}` },
    spec: {
      integration: "google-drive",
      secret: { CLIENT_ID: CLIENT.id, CLIENT_SECRET: CLIENT.secret, REFRESH_TOKEN: refreshToken },
      // What the platform knows by itself for the real service.
      config: { tokenUrl: party.tokenUrl, baseUrl: party.apiUrl },
    },
  });
  const server = await post("/functions", {
    metadata: { name: `drive-${user}`, displayName: `Drive of ${user}` },
    spec: { type: "mcp", integrationConnections: [`drive-${user}`], runtime: { type: "mcp" } },
  });
  return connection.status === 200 && server.status === 200;
}

/** Steps 1 to 5, as a browser goes through them. */
async function connectUser(platform: TestPlatform, user: string): Promise<void> {
  backend.platform = platform;
  party.user = user;
  const begun = await fetch(`${backend.url}/connect?user=${user}`, { redirect: "manual" });
  const { url: back } = await new Browser(party.issuer).visit(begun.headers.get("location") ?? "");
  assert.ok(back.startsWith(`${backend.url}/callback?code=`), back);
  assert.equal((await fetch(back)).status, 200);
}

const open = (platform: TestPlatform, user: string): Promise<Connected> =>
  connectMcp(new URL(`${platform.url}/main/functions/drive-${user}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${platform.apiKey}` } },
  });

const placeOf = (user: string) =>
  [{ workspace: "main", kind: "integrationconnection", parent: "" }, `drive-${user}`] as const;

describe("the integration flow", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startTestPlatform({ clock });
  });
  after(() => platform.stop());

  test("each user has a server with their own data, and nobody sees a token", async () => {
    for (const user of ["ada", "bob"]) await connectUser(platform, user);
    for (const user of ["ada", "bob"]) {
      await using server = await open(platform, user);
      const { tools } = await server.client.listTools();
      assert.ok(tools.some(({ name }) => name === "searchFiles"));
      const answer = await server.say("searchFiles", { q: "name contains 'report'" });
      const { files, q, authorization } = JSON.parse(answer);
      assert.deepEqual([files[0].name, q], [`report of ${user}`, "name contains 'report'"]);
      assert.equal(authorization, "Bearer ********");
      const wrong = await server.client.callTool({ name: "getFile", arguments: { fileId: "no/such" } });
      assert.match(JSON.stringify(wrong), /Google Drive answered 404: .*no%2Fsuch/);
    }
    const { body: connection } = await platform.call("GET", "/integrations/connections/drive-ada");
    const { body: server } = await platform.call("GET", "/functions/drive-ada?show_secrets=true");
    assert.equal(server.status, "DEPLOYED");
    assert.equal(connection.spec.secret.REFRESH_TOKEN, "********");
    const shown = JSON.stringify([connection, server]);
    for (const secret of [CLIENT.secret, backend.tokens.get("ada")?.refresh_token ?? "", ...party.seen])
      assert.ok(!shown.includes(secret.replace("Bearer ", "")));
  });

  test("an access token is exchanged once and used until it ends; a replaced refresh token is kept, sealed", async () => {
    await using server = await open(platform, "ada");
    const before = party.refreshes();
    await server.say("searchFiles");
    await server.say("searchFiles");
    assert.equal(party.refreshes(), before, "the token of the test before is still good");
    for (let round = 1; round <= 2; round += 1) {
      skewMs += 2 * HOUR_MS;
      const answers = await Promise.all(Array.from({ length: 10 }, () => server.say("searchFiles")));
      for (const answer of answers) assert.match(answer, /report of ada/);
      assert.equal(party.refreshes(), before + round, "ten calls at once, one exchange");
    }
    const found = await platform.app.store.resources.get(...placeOf("ada"));
    const { REFRESH_TOKEN, CLIENT_SECRET } = secretsIn(platform, found ?? assert.fail());
    assert.notEqual(REFRESH_TOKEN, backend.tokens.get("ada")?.refresh_token);
    assert.equal(CLIENT_SECRET, CLIENT.secret);
    assert.ok(!JSON.stringify(found).includes(REFRESH_TOKEN ?? ""));
  });

  test("a token that is taken back before its time is replaced, once", async () => {
    await using server = await open(platform, "ada");
    await server.say("searchFiles");
    party.refused.add((party.seen.at(-1) ?? "").replace("Bearer ", ""));
    const before = party.refreshes();
    assert.match(await server.say("searchFiles"), /report of ada/);
    assert.equal(party.refreshes(), before + 1);
  });

  test("a user who has taken back the consent is asked to connect again", async () => {
    const { body: current } = await platform.call("GET", "/integrations/connections/drive-bob");
    const secret = { ...current.spec.secret, REFRESH_TOKEN: "no longer good" };
    const changed = await platform.call("PUT", "/integrations/connections/drive-bob", {
      body: { ...current, spec: { ...current.spec, secret } },
    });
    assert.equal(changed.status, 200);
    await using server = await open(platform, "bob");
    for (let round = 0; round < 2; round += 1) {
      const refused = await server.client.callTool({ name: "searchFiles" });
      assert.match(JSON.stringify(refused), /"isError":true/);
      assert.match(JSON.stringify(refused), /invalid_grant.*connect the account again/);
    }
    const { events } = (await platform.app.store.resources.get(...placeOf("bob"))) ?? assert.fail();
    assert.equal(events.filter(({ type }) => type === "refresh_failed").length, 1);
  });

  test("the sessionless protocol, and what the address refuses", async () => {
    const url = `${platform.url}/main/functions/drive-ada`;
    const headers = {
      authorization: `Bearer ${platform.apiKey}`,
      "content-type": "application/json",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "server/discover",
    };
    await using modern = await connectModern(new URL(`${url}/mcp`), { requestInit: { headers } });
    assert.equal(modern.client.getServerVersion()?.name, "google-drive");
    assert.ok((await modern.client.listTools()).tools.length > 0);
    const params = {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "server/discover", params });
    const discovered = await fetch(`${url}/mcp`, { method: "POST", headers, body });
    const { result } = (await discovered.json()) as { result: { serverInfo: { name: string } } };
    assert.equal(result.serverInfo.name, "google-drive");
    const listening = await fetch(`${url}/mcp`, { headers });
    assert.deepEqual([listening.status, listening.headers.get("allow")], [405, "POST"]);
    assert.equal((await fetch(`${url}/other`, { method: "POST", headers, body })).status, 404);
    assert.equal((await fetch(`${url}/mcp`, { method: "POST", body })).status, 401);
    assert.equal((await platform.call("DELETE", "/integrations/connections/drive-ada")).status, 409);
  });

  test("the hub names the servers, and one with a plain token works the same way", async () => {
    const { body: hub } = await platform.call("GET", "/mcp/hub");
    const drive = hub.find(({ name }: { name: string }) => name === "google-drive");
    assert.deepEqual([drive.integration, drive.image], ["google-drive", "service/mcp-google-drive:latest"]);
    const connection = {
      integration: "github",
      secret: { GITHUB_TOKEN: "ghp_test" },
      config: { baseUrl: party.apiUrl },
    };
    await platform.call("POST", "/integrations/connections", { body: { metadata: { name: "hub" }, spec: connection } });
    const spec = { integrationConnections: ["hub"] };
    await platform.call("POST", "/functions", { body: { metadata: { name: "drive-github" }, spec } });
    await using server = await open(platform, "github");
    const answer = await server.client.callTool({ name: "searchRepositories", arguments: { q: "x" } });
    assert.match(JSON.stringify(answer), /GitHub answered 401/);
    assert.ok(!JSON.stringify(answer).includes("ghp_test"));
    assert.equal(party.seen.at(-1), "Bearer ghp_test");
  });

  test("only an admin hands the secrets of a connection to code", async () => {
    const { store } = platform.app;
    const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
    const { key } = await makeUser(store, accountId, "member", { main: "member" });
    const create = async (name: string, path: string): Promise<number> => {
      const body = { metadata: { name }, spec: { integrationConnections: ["drive-ada"] } };
      return (await platform.call("POST", path, { key, body, workspace: "main" })).status;
    };
    assert.equal(await create("mine-too", "/functions"), 200, "the service's own server shows none");
    assert.equal(await create("thief", "/functions?upload=true"), 403);
  });

  test("a memory remembers by thread, for its own function alone", async () => {
    for (const name of ["drive-mine", "drive-yours"]) {
      const spec = { runtime: { image: "service/mcp-memory:latest" } };
      assert.equal((await platform.call("POST", "/functions", { body: { metadata: { name }, spec } })).status, 200);
    }
    await using mine = await open(platform, "mine");
    await using yours = await open(platform, "yours");
    await mine.say("remember", { thread: "t1", content: "I like tea" });
    await mine.say("remember", { thread: "t1", content: "Noted", role: "assistant" });
    const recalled = async (server: Connected, thread: string): Promise<string[]> =>
      JSON.parse(await server.say("recall", { thread })).messages.map(
        ({ role, content }: { role: string; content: string }) => `${role}: ${content}`,
      );
    await using later = await open(platform, "mine");
    assert.deepEqual(await recalled(later, "t1"), ["user: I like tea", "assistant: Noted"]);
    assert.deepEqual(await recalled(later, "t2"), []);
    assert.deepEqual(await recalled(yours, "t1"), []);
    assert.match(await mine.say("remember", { thread: "t1", content: "x".repeat(64 * 1024 + 1) }), /at most/);
    assert.match(await mine.say("recall", { thread: "\n" }), /printable/);
    await mine.say("forget", { thread: "t1" });
    assert.deepEqual(await recalled(mine, "t1"), []);
  });

  test("an administrator decides whether private addresses may be called", async () => {
    await using strict = await startTestPlatform({ config: { private_connections: "false" } });
    assert.ok(await storeConnection(strict, "eve", "whatever"));
    await using server = await open(strict, "eve");
    const answer = await server.client.callTool({ name: "searchFiles" });
    assert.match(JSON.stringify(answer), /not an address this platform may connect to/);
  });
});

const postgres = databases.all.find(({ name }) => name === "postgres") ?? assert.fail();

test("two servers make one exchange", { skip: postgres.skip }, async () => {
  const { databaseUrl } = await postgres.migrated();
  const config = { secret_key: "one key for all servers of one database" };
  await using one = await startTestPlatform({ databaseUrl, config, clock });
  await using two = await startTestPlatform({ databaseUrl, config, clock });
  await connectUser(one, "carol");
  await using first = await open(one, "carol");
  await using second = await open(two, "carol");
  for (let round = 0; round < 3; round += 1) {
    skewMs += 2 * HOUR_MS;
    const before = party.refreshes();
    const answers = await Promise.all([first, second, first, second].map((server) => server.say("searchFiles")));
    for (const answer of answers) assert.match(answer, /report of carol/);
    assert.equal(party.refreshes(), before + 1);
  }
});

const secretsIn = (
  platform: TestPlatform,
  resource: Parameters<TestPlatform["app"]["store"]["resources"]["secretsOf"]>[0],
): Record<string, string | undefined> =>
  Object.fromEntries(
    Object.entries(platform.app.store.resources.secretsOf(resource)).map(([key, value]) => [
      key.split("/").at(-1),
      value,
    ]),
  );
