/** Small holes, each of which gave away something by itself. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, suite, test } from "node:test";
import type { FastifyRequest } from "fastify";
import { requireScraper } from "../../src/api/metrics-access.ts";
import { queryValue, withoutTokens } from "../../src/gateway/credentials.ts";
import { runBerth } from "../berth-process.ts";
import { makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

suite("small holes", () => {
  let platform: TestPlatform;
  let aheadMs = 0;
  let member: { key: string };
  let colleague: { key: string };

  before(async () => {
    platform = await startTestPlatform({ clock: { now: () => Date.now() + aheadMs } });
    const { store } = platform.app;
    const [account] = await store.people.listAccountsAcrossUsers();
    member = await makeUser(store, account?.id ?? "", "member", { main: "member" });
    colleague = await makeUser(store, account?.id ?? "", "member", { main: "member" });
  });
  after(() => platform.stop());

  test("a key that ends makes none that outlives it", async () => {
    const made = await platform.call("POST", "/api_keys", { body: { name: "hour", expires_in: "1h" } });
    const { apiKey: key, expiresAt } = made.body;
    const heir = await platform.call("POST", "/api_keys", { key, body: { name: "heir" } });
    assert.deepEqual([heir.status, heir.body.expiresAt], [200, expiresAt]);
    const longer = await platform.call("POST", "/api_keys", { key, body: { name: "longer", expires_in: "2h" } });
    assert.equal(longer.status, 403, JSON.stringify(longer.body));
    const grandchild = await platform.call("POST", "/api_keys", { key: heir.body.apiKey, body: { name: "third" } });
    assert.equal(grandchild.body.expiresAt, expiresAt);
  });

  test("a key that was given an end has one, however the end is written", async () => {
    for (const expires_in of ["5s", 5, "5"]) {
      const { status, body } = await platform.call("POST", "/api_keys", { body: { name: "short", expires_in } });
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(Date.parse(body.expiresAt) - Date.parse(body.createdAt) <= 6000, true);
      assert.equal((await platform.call("GET", "/workspaces", { key: body.apiKey })).status, 200);
      aheadMs += 10_000;
      assert.equal((await platform.call("GET", "/workspaces", { key: body.apiKey })).status, 401);
    }
    const wrong = [
      ...[{ expires_in: "" }, { expires_in: "5 s" }, { expires_in: "-5s" }, { expires_in: 0 }, { expires_in: -1 }],
      ...[{ expires_in: "soon" }, { expires_in: "99999d" }, { expires_in: 1e12 }],
      ...[{ expiresIn: "5s" }, { expires_at: "2020-01-01" }, { expiresAt: "2020-01-01" }, { ttl: 5 }, { expiry: "5s" }],
      ...[{ scope: ["sandboxes:get"] }, { Scopes: ["sandboxes:get"] }, { expires: "5s" }, { expires_on: "2020-01-01" }],
    ];
    for (const body of wrong)
      assert.equal((await platform.call("POST", "/api_keys", { body })).status, 400, JSON.stringify(body));
  });

  test("a program is answered over https, on loopback, or at a scheme with a dot, and nowhere else", async () => {
    const register = async (uri: string): Promise<number> => {
      const response = await fetch(`${platform.url}/oauth/register`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ redirect_uris: [uri] }),
      });
      await response.arrayBuffer();
      return response.status;
    };
    const fine = ["https://app.example/cb", "http://127.0.0.1:9/cb", "http://[::1]/cb", "com.example.app:/cb"];
    for (const uri of fine) assert.equal(await register(uri), 201, uri);
    const wrong = [
      ...["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd"],
      ...["ms-msdt:/id", "search-ms:query=x", "ms-settings:x", "steam://run/1", "vscode://x/cb", "cursor://x/cb"],
      ...["ssh://host/", "tel:1", "intent://x", "app:/cb", "jar:file:///x", "view-source:https://x", "feed:x"],
    ];
    for (const uri of wrong) assert.equal(await register(uri), 400, uri);
  });

  test("a dry run or a workspace that was misspelt is not carried out instead", async () => {
    const body = { metadata: { name: "rehearsed" }, spec: {} };
    const misspelt = [
      "dryrun=true",
      "DRYRUN=1",
      "dry_run=true",
      "dry-run=true",
      "DryRun=",
      "dryrun=false",
      "dryRun=true&dryrun=0",
    ];
    for (const query of [...misspelt, "Workspace=main", "WORKSPACE=other"]) {
      const { status, body: answer } = await platform.call("POST", `/drives?${query}`, { body, workspace: "main" });
      assert.deepEqual([status, answer.error], [400, "invalid_parameter"], query);
      const escaped = query.replace(/^./, (first) => `%${first.charCodeAt(0).toString(16)}`);
      assert.equal(
        (await platform.call("POST", `/drives?${escaped}`, { body, workspace: "main" })).status,
        400,
        escaped,
      );
    }
    assert.equal((await platform.call("GET", "/drives/rehearsed", { workspace: "main" })).status, 404);
    assert.equal((await platform.call("GET", "/drives?Workspace=x&dryrun=1", { workspace: "main" })).status, 200);
  });

  test("a token of a preview is found and taken out, however its name is encoded", () => {
    for (const name of ["bl_preview_token", "bl%5Fpreview_token", "%62l_preview%5ftoken", "bl_previe%77_token"]) {
      assert.equal(queryValue(`/x?${name}=secret&b=1`, "bl_preview_token"), "secret", name);
      assert.equal(withoutTokens(`/x?a=%2F&${name}=secret&b=1`, false), "/x?a=%2F&b=1", name);
      assert.equal(withoutTokens(`/x?${name}=secret`, false), "/x", name);
    }
    assert.equal(withoutTokens("/x?t%6Fken=secret&a=1", true), "/x?a=1");
    assert.equal(withoutTokens("/x?a=bl_preview_token&b=%zz&%zz=1", false), "/x?a=bl_preview_token&b=%zz&%zz=1");
  });

  /** The first line of the answer to bytes that no client sends by accident. */
  const raw = async (bytes: string): Promise<string> => {
    const { hostname, port } = new URL(platform.url);
    const socket = connect(Number(port), hostname);
    socket.end(bytes);
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    await once(socket, "close");
    return text.split("\r\n", 1)[0] ?? "";
  };

  test("a length that no number holds, and HTTP/0.9, are refused", async () => {
    for (const length of ["9007199254740993", "18446744073709551615", "99999999999999999999"])
      for (const path of ["/v0/drives", "/main/agents/a"])
        assert.match(
          await raw(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n{}`),
          /^HTTP\/1\.1 400/,
        );
    for (const bytes of ["GET /healthz\r\n\r\n", "GET /healthz HTTP/0.9\r\n\r\n", "GET /main/agents/a\r\n\r\n"])
      assert.match(await raw(bytes), /^HTTP\/1\.1 400/, bytes);
    assert.match(await raw("GET /healthz HTTP/1.0\r\n\r\n"), /^HTTP\/1\.1 200/);
  });

  test("a request that names two hosts, or none that a host could be, is refused", async () => {
    const ask = (line: string, ...fields: string[]): Promise<string> =>
      raw(`${line} HTTP/1.1\r\n${fields.map((field) => `${field}\r\n`).join("")}Connection: close\r\n\r\n`);
    for (const path of ["/healthz", "/main/agents/a"]) {
      for (const fields of [
        ["Host: a.test", "Host: b.test"],
        ["Host: a.test", "hOST: a.test"],
        ["Host: a.test, b.test"],
        ["Host: a.test b.test"],
        ["Host: u@a.test"],
        ["Host: a.test/x"],
        ["Host: a.test#x"],
        ["Host: a.test:80:81"],
        ["Host: [::1"],
        ["X: 1"],
      ])
        assert.match(await ask(`GET ${path}`, ...fields), /^HTTP\/1\.1 400/, fields.join("|"));
      for (const absolute of ["http://b.test", "http://u:p@b.test", "https://b.test:9"])
        assert.match(await ask(`GET ${absolute}${path}`, "Host: a.test"), /^HTTP\/1\.1 400/, absolute);
    }
    for (const fields of [["Host:"], ["Host: a.test."], ["Host: [::1]:80"], ["Host: x_y.test:1"]])
      assert.match(await ask("GET /healthz", ...fields), /^HTTP\/1\.1 200/, fields[0]);
    assert.match(await ask("GET http://A.test./healthz", "Host: a.test:80"), /^HTTP\/1\.1 200/);
  });

  test("metrics are for this machine and for admins, and not for workloads", async () => {
    const scrape = async (headers: Record<string, string>): Promise<number> => {
      const response = await fetch(`${platform.url}/metrics`, { headers });
      await response.arrayBuffer();
      return response.status;
    };
    assert.equal(await scrape({}), 200);
    for (const name of ["x-forwarded-for", "forwarded", "x-real-ip", "via"])
      assert.equal(await scrape({ [name]: "127.0.0.1" }), 401, name);
    assert.equal(await scrape({ authorization: `Bearer ${member.key}` }), 403);
    assert.equal(await scrape({ authorization: "Bearer wrong" }), 401);
    const admin = { authorization: `Bearer ${platform.apiKey}` };
    assert.equal(await scrape({ ...admin, "x-forwarded-for": "203.0.113.9" }), 200);
    // A workload's door is a stream without an address.
    const inside = { headers: admin, raw: { socket: {} } } as unknown as FastifyRequest;
    await assert.rejects(requireScraper(inside, {} as never), { code: "not_found" });
  });

  test("an image and a domain are deleted by who made them, or by an admin", async () => {
    const made = [
      ["POST", "/images", { name: "tool", resourceType: "sandbox", image: "registry.example/tool:1" }],
      ["POST", "/customdomains", { metadata: { name: "app.example.test" }, spec: {} }],
    ] as const;
    for (const [method, path, body] of made) {
      const { status, body: said } = await platform.call(method, path, { key: member.key, body });
      assert.ok(status < 300, JSON.stringify(said));
    }
    const paths = ["/images/sandbox/tool", "/images/sandbox/tool/tags/1", "/customdomains/app.example.test"];
    for (const path of paths)
      assert.equal((await platform.call("DELETE", path, { key: colleague.key })).status, 403, path);
    assert.equal((await platform.call("DELETE", "/images", { key: colleague.key })).body?.deleted ?? 0, 0);
    assert.equal((await platform.call("GET", paths[0] ?? "")).status, 200);
    assert.equal((await platform.call("DELETE", paths[0] ?? "", { key: member.key })).status, 200);
    assert.equal((await platform.call("DELETE", paths[2] ?? "")).status, 200, "an admin may");
  });

  test("the command line deletes a workspace with something in it only when that is said", async () => {
    const cli = (...args: string[]) =>
      runBerth(args, { env: { BERTH_URL: platform.url, BERTH_API_KEY: platform.apiKey } });
    for (const name of ["empty-one", "full-one"])
      assert.equal((await platform.call("POST", "/workspaces", { body: { name } })).status, 200);
    const drive = { metadata: { name: "d" }, spec: {} };
    assert.equal((await platform.call("POST", "/drives", { body: drive, workspace: "full-one" })).status, 200);
    const refused = await cli("workspace", "delete", "full-one");
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /not empty: it has .*1 drives[\s\S]*--yes/);
    assert.equal((await platform.call("GET", "/workspaces/full-one")).status, 200);
    assert.equal((await cli("workspace", "delete", "empty-one")).code, 0);
    assert.equal((await cli("workspace", "delete", "full-one", "--yes")).code, 0);
  });
});
