/** Plain management requests are answered straight from the socket; nobody may be able to tell but by the clock. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { testDatabases } from "../databases.ts";
import { RawClient } from "../gateway/harness.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());
const [database] = databases.all;
assert.ok(database);

interface Ask {
  method?: string;
  path: string;
  headers?: string[];
  body?: string;
}

interface Seen {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const JSON_TYPE = "Content-Type: application/json";
const drive = (name: string, more = ""): string => `{"metadata":{"name":"${name}"${more}},"spec":{"size":3}}`;

/** Each is sent both ways; where it changes something, NAME is another name each time. */
const ASKS: Record<string, Ask> = {
  "one that exists": { path: "/v0/drives/kept" },
  "one that does not": { path: "/v0/drives/none" },
  "a list": { path: "/v0/volumes?limit=2&sort=name:asc", headers: ["Service-Version: 2026-04-28"] },
  "a list of an older version": { path: "/v0/volumes" },
  "a parameter given twice": { path: "/v0/drives?limit=1&limit=2", headers: ["Service-Version: 2026-04-28"] },
  "a parameter that breaks its rule": { path: "/v0/drives?limit=x", headers: ["Service-Version: 2026-04-28"] },
  "an unknown version": { path: "/v0/drives/kept", headers: ["Service-Version: 2020-01-01"] },
  "no credentials": { path: "/v0/drives/kept", headers: ["Authorization:"] },
  "wrong credentials": { path: "/v0/drives/kept", headers: ["Authorization: Bearer wrong"] },
  "another workspace": { path: "/v0/drives/kept", headers: ["X-Service-Workspace: other"] },
  "an id that the caller brings": { path: "/v0/drives/kept", headers: ["X-Request-Id: abc-123"] },
  "an id that is odd": { path: "/v0/drives/kept", headers: ["X-Request-Id: a b"] },
  "no such path": { path: "/v0/nothing/here" },
  "another method": { method: "PUT", path: "/v0/drives", headers: [JSON_TYPE], body: "{}" },
  "a slash at the end": { path: "/v0/drives/kept/" },
  "two slashes": { path: "/v0//drives/kept" },
  "a name with an escape": { path: "/v0/drives/kep%74" },
  "an escape that is broken": { path: "/v0/drives/%zz" },
  "a name that is too long": { path: `/v0/drives/${"n".repeat(1100)}` },
  HEAD: { method: "HEAD", path: "/v0/drives/kept" },
  "a create": { method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: drive("NAME") },
  "a create with a charset": {
    method: "POST",
    path: "/v0/drives",
    headers: ["content-type: application/json; charset=utf-8"],
    body: drive("NAME", ',"displayName":"Grö\u00dfer \u2192"'),
  },
  "a name that is taken": { method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: drive("kept") },
  "a field that breaks its rule": { method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: drive("No Name") },
  nulls: { method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: drive("NAME", ',"labels":null') },
  "a null in a list": {
    method: "POST",
    path: "/v0/policies",
    headers: [JSON_TYPE],
    body: '{"metadata":{"name":"NAME"},"spec":{"type":"location","locations":[null]}}',
  },
  "no JSON": { method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: '{"metadata":' },
  "JSON that would change a prototype": {
    method: "POST",
    path: "/v0/drives",
    headers: [JSON_TYPE],
    body: '{"__proto__":{"x":1},"metadata":{"name":"NAME"},"spec":{}}',
  },
  "an empty body": { method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: "" },
  "another type": { method: "POST", path: "/v0/drives", headers: ["Content-Type: text/plain"], body: "x" },
  "no type": { method: "POST", path: "/v0/drives", body: drive("NAME") },
  "a stale change": {
    method: "PUT",
    path: "/v0/drives/kept",
    headers: [JSON_TYPE, 'If-Match: "77"'],
    body: drive("kept"),
  },
  "a deletion of nothing": { method: "DELETE", path: "/v0/drives/none" },
  "a body beyond the limit": {
    method: "POST",
    path: "/v0/drives",
    headers: [JSON_TYPE],
    body: drive("NAME", `,"displayName":"${"x".repeat(5_000_000)}"`),
  },
};

describe("plain requests", () => {
  let platform: TestPlatform;
  let port: number;
  before(async () => {
    platform = await startTestPlatform(await database.migrated());
    port = Number(new URL(platform.url).port);
    await platform.call("POST", "/drives", { body: JSON.parse(drive("kept")) });
    for (const name of ["v1", "v2", "v3"])
      await platform.call("POST", "/volumes", { body: { metadata: { name }, spec: { size: 1 } } });
  });
  after(() => platform.stop());

  const textOf = ({ method = "GET", path, headers = [], body }: Ask, extra: string[]): string => {
    const own = headers.some((header) => /^authorization:/i.test(header))
      ? []
      : [`Authorization: Bearer ${platform.apiKey}`];
    const bytes = body === undefined ? null : Buffer.from(body);
    const length = bytes === null ? [] : [`Content-Length: ${bytes.length}`];
    const lines = [`${method} ${path} HTTP/1.1`, "Host: h", ...own, ...headers, ...length, ...extra];
    return `${lines.join("\r\n")}\r\n\r\n${bytes?.toString("latin1") ?? ""}`;
  };

  const send = async (ask: Ask, extra: string[] = []): Promise<Seen> => {
    const client = await RawClient.to(port);
    client.write(textOf(ask, extra));
    const headText = (await client.until((text) => text.includes("\r\n\r\n"))).split("\r\n\r\n")[0] ?? "";
    const [first = "", ...lines] = headText.split("\r\n");
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)]),
    );
    const length = ask.method === "HEAD" ? 0 : Number(headers["content-length"] ?? 0);
    const whole = await client.until((text) => text.length >= headText.length + 4 + length);
    client.socket.destroy();
    const body = Buffer.from(whole.slice(headText.length + 4), "latin1").toString();
    return { status: Number(first.split(" ")[1]), headers, body };
  };

  /** A header that comes twice is for Node's server. */
  const NODE = ["X-Twice: 1", "X-Twice: 2"];
  let names = 0;
  const fresh = (ask: Ask): { ask: Ask; name: string } => {
    names += 1;
    const name = `fresh-${names}`;
    return { name, ask: ask.body === undefined ? ask : { ...ask, body: ask.body.replace("NAME", name) } };
  };
  const compared = ({ status, headers, body }: Seen, name: string): unknown => {
    const { date: _date, "keep-alive": _kept, "x-request-id": id = "", ...rest } = headers;
    const told = body
      .replaceAll(name, "NAME")
      .replace(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"TIME"')
      .replace(/"uid":"[^"]*"/, '"uid":"UID"')
      .replace(/"nextCursor":"[^"]+"/, '"nextCursor":"PLACE"');
    // Names of different lengths make different bodies; after a bad body the framework closes, which nobody has to.
    delete rest["content-length"];
    delete rest.connection;
    return { status, headers: rest, id: id.replace(/^req-.*/, "req"), body: told };
  };

  for (const [what, asked] of Object.entries(ASKS)) {
    test(`${what}: the same answer both ways`, async () => {
      const [one, two] = [fresh(asked), fresh(asked)];
      const plain = compared(await send(one.ask), one.name);
      const node = compared(await send(two.ask, NODE), two.name);
      assert.deepEqual(plain, node);
    });
  }

  test("what is plain does take the short way, and nothing else does", async () => {
    const byNode = ({ headers }: Seen): boolean => headers["keep-alive"] !== undefined;
    assert.equal(byNode(await send({ path: "/v0/drives/kept" })), false);
    const create = { method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: drive("short") };
    assert.equal(byNode(await send(create)), false);
    assert.equal(byNode(await send({ path: "/v0/drives/kept" }, NODE)), true);
    assert.equal(byNode(await send({ path: "/v0/drives/kep%74" })), true);
  });

  test("requests sent ahead are answered in order, whichever way each goes", async () => {
    const client = await RawClient.to(port);
    const asks = ["kept", "none", "kep%74", "kept"].map((name) => textOf({ path: `/v0/drives/${name}` }, []));
    client.write(asks.join(""));
    const all = await client.until((text) => (text.match(/HTTP\/1\.1 /g) ?? []).length === 4 && text.endsWith("}"));
    assert.deepEqual(
      all.match(/HTTP\/1\.1 \d+/g),
      ["200", "404", "200", "200"].map((status) => `HTTP/1.1 ${status}`),
    );
    client.socket.destroy();
  });

  test("a head that comes again is answered as of now, with its own body", async () => {
    const { call } = platform;
    const { client_id: id } = (await call("POST", "/service_accounts", { body: { name: "again" } })).body;
    const made = (await call("POST", `/service_accounts/${id}/api_keys`, { body: {} })).body;
    const client = await RawClient.to(port);
    const say = async (ask: Ask): Promise<string> => {
      const from = client.received.length;
      client.write(textOf({ ...ask, headers: [`Authorization: Bearer ${made.apiKey}`, JSON_TYPE] }, []));
      const text = await client.until((received) => received.slice(from).endsWith("}"));
      return text.slice(from);
    };
    const read = (): Promise<string> => say({ path: "/v0/drives/again-1" });
    for (const status of [404, 404, 404]) assert.match(await read(), new RegExp(`^HTTP/1.1 ${status} `));
    for (const name of ["again-1", "again-2", "again-3"])
      assert.match(
        await say({ method: "POST", path: "/v0/drives", body: drive(name) }),
        new RegExp(`"name":"${name}"`),
      );
    for (const status of [200, 200, 200]) assert.match(await read(), new RegExp(`^HTTP/1.1 ${status} `));
    const idOf = (answer: string): string | undefined => /x-request-id: (\S+)/.exec(answer)?.[1];
    assert.notEqual(idOf(await read()), idOf(await read()));
    await call("DELETE", `/service_accounts/${id}/api_keys/${made.id}`);
    assert.match(await read(), /^HTTP\/1.1 401 /);
    client.socket.destroy();
  });

  test("a body in pieces, with the head before it", async () => {
    const client = await RawClient.to(port);
    const text = textOf({ method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: drive("pieces") }, []);
    const cut = text.indexOf("\r\n\r\n") + 4;
    client.write(text.slice(0, cut));
    for (const piece of text.slice(cut).match(/.{1,9}/g) ?? []) {
      await new Promise((resolve) => setImmediate(resolve));
      client.write(piece);
    }
    assert.match(await client.until((received) => received.endsWith("}")), /^HTTP\/1\.1 200 /);
    client.socket.destroy();
  });

  test("a client that leaves in the middle of its body leaves nothing behind", async () => {
    const client = await RawClient.to(port);
    const text = textOf({ method: "POST", path: "/v0/drives", headers: [JSON_TYPE], body: drive("half") }, []);
    client.write(text.slice(0, -5));
    client.socket.destroy();
    assert.equal((await send({ path: "/v0/drives/half" })).status, 404);
  });
});
