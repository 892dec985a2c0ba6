/** Against a small local server that says what the real one would not; the real one is met in test/e2e/client.test.ts. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { z } from "zod";
import { freePort } from "../../test/free-port.ts";
import { defineOperation } from "../contract/operation.ts";
import { ApiError } from "./api-error.ts";
import { type Client, createClient } from "./client.ts";

const common = { tenancy: "workspace", scope: null, role: "member", response: z.unknown() } as const;
const list = defineOperation({ ...common, id: "thingList", method: "GET", path: "/things", summary: "", paged: true });
const get = defineOperation({ ...common, id: "thingGet", method: "GET", path: "/things/{thingName}", summary: "" });
const create = defineOperation({
  ...common,
  id: "thingCreate",
  method: "POST",
  path: "/things",
  summary: "",
  body: z.unknown(),
});

let server: Server;
let client: Client;
let url: string;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let seen: IncomingMessage[] = [];

before(async () => {
  server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = createClient({ url: `${url}/v0/`, apiKey: "key", workspace: "dev" });
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const says =
  (status: number, body: unknown, headers: Record<string, string> = {}) =>
  (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };

const collect = async (items: AsyncIterable<unknown>): Promise<unknown[]> => {
  const all: unknown[] = [];
  for await (const item of items) all.push(item);
  return all;
};

const failure = async (work: Promise<unknown>): Promise<ApiError> => {
  const error = await work.then(
    () => assert.fail("it succeeded"),
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
};

test("a call carries credentials, workspace and the newest version", async () => {
  seen = [];
  answer = says(200, { ok: true });
  assert.deepEqual(await client.call(create, { body: { a: 1 } }), { ok: true });
  const [request] = seen;
  assert.equal(request?.url, "/v0/things");
  assert.equal(request?.headers.authorization, "Bearer key");
  assert.equal(request?.headers["x-service-workspace"], "dev");
  assert.equal(request?.headers["service-version"], "2026-04-28");
  assert.equal(request?.headers["content-type"], "application/json");
});

test("parameters cannot leave their place in the path", async () => {
  seen = [];
  answer = says(200, {});
  await client.call(get, { params: { thingName: "a/../b?c#d" }, query: { x: "1&y=2", absent: undefined } });
  assert.equal(seen[0]?.url, "/v0/things/a%2F..%2Fb%3Fc%23d?x=1%26y%3D2");
  for (const thingName of ["", ".", ".."]) {
    assert.equal((await failure(client.call(get, { params: { thingName } }))).code, "invalid_parameter");
  }
  assert.equal(seen.length, 1);
});

test("a listing follows cursors and takes bare arrays and null", async () => {
  seen = [];
  const pages: Record<string, unknown> = {
    first: { data: [1, 2], meta: { nextCursor: "c1" } },
    c1: { data: [3], meta: { nextCursor: "" } },
  };
  answer = (request, response) => {
    const cursor = new URL(request.url ?? "", url).searchParams.get("cursor") ?? "first";
    says(200, pages[cursor])(request, response);
  };
  assert.deepEqual(await collect(client.items(list, { query: { q: "x" } })), [1, 2, 3]);
  assert.deepEqual(
    seen.map((request) => request.url),
    ["/v0/things?limit=200&q=x", "/v0/things?limit=200&q=x&cursor=c1"],
  );
  for (const [body, items] of [
    [[7], [7]],
    [null, []],
  ] as const) {
    answer = says(200, body);
    assert.deepEqual(await collect(client.items(list)), items);
  }
});

test("a server that repeats a cursor does not hold the listing forever", async () => {
  answer = says(200, { data: [1], meta: { nextCursor: "again" } });
  assert.equal((await failure(collect(client.items(list)))).code, "repeated_cursor");
});

const FAILURES: [what: string, answer: Parameters<typeof says>, status: number, code: string, message: RegExp][] = [
  ["a management error", [404, { code: 404, error: "not_found", message: "gone" }], 404, "not_found", /^gone$/],
  [
    "a sandbox error",
    [400, { code: "INVALID_IMAGE", message: "no such image" }],
    400,
    "INVALID_IMAGE",
    /^no such image$/,
  ],
  ["an error without a message", [500, { error: "internal" }], 500, "internal", /answered 500 \(internal\)/],
  ["an error without a body", [503, ""], 503, "failed", /answered 503/],
  ["a page of somebody else", [200, "<html>"], 200, "not_json", /Is it a Berth server/],
  ["a redirect", [301, "", { location: "https://elsewhere/" }], 301, "redirected", /redirects to https:\/\/elsewhere/],
];

for (const [what, said, status, code, message] of FAILURES) {
  test(`${what} is an ApiError`, async () => {
    answer = says(...said);
    const error = await failure(client.call(list));
    assert.deepEqual([error.status, error.code], [status, code]);
    assert.match(error.message, message);
  });
}

test("the request id is kept, to find the request in the log", async () => {
  answer = says(500, {}, { "x-request-id": "req-1" });
  assert.equal((await failure(client.call(list))).requestId, "req-1");
});

test("no answer at all has status 0", async () => {
  const refused = await failure(createClient({ url: `http://127.0.0.1:${await freePort()}` }).call(list));
  assert.deepEqual([refused.status, refused.code], [0, "unreachable"]);
  assert.match(refused.message, /ECONNREFUSED/);

  answer = () => {};
  const silent = await failure(createClient({ url, timeoutMs: 20 }).call(list));
  assert.equal(silent.code, "unreachable");
  answer = (_request, response) => {
    response.writeHead(200);
    response.write("{");
    response.destroy();
  };
  assert.equal((await failure(client.call(list))).code, "unreachable");
});

test("an aborted call rejects with the caller's own reason", async () => {
  const aborter = new AbortController();
  answer = () => aborter.abort(new Error("enough"));
  await assert.rejects(client.call(list, { signal: aborter.signal }), /enough/);
});
