import assert from "node:assert/strict";
import { createServer } from "node:http";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { LONG } from "../../../test/long.ts";
import fc from "../../../test/properties.ts";
import { readPlainHead } from "./request-head.ts";

test("a plain head is read as it stands", () => {
  const head = readPlainHead(
    "POST /a//b?c HTTP/1.1\r\nhOst: h:1\r\nX-A:\t\xa0b \r\nContent-Length: 07\r\nConnection: close",
  );
  assert.deepEqual(head, {
    method: "POST",
    target: "/a//b?c",
    rawHeaders: ["hOst", "h:1", "X-A", "\xa0b", "Content-Length", "07", "Connection", "close"],
    names: ["host", "x-a", "content-length", "connection"],
    host: "h:1",
    contentLength: 7,
    close: true,
    isRepeated: false,
    client: null,
  });
});

test("whatever has a meaning of its own is left to Node", () => {
  const host = "Host: h";
  const rest = [
    "GET / HTTP/1.0\r\nHost: h",
    "GET http://h/ HTTP/1.1\r\nHost: h",
    "OPTIONS * HTTP/1.1\r\nHost: h",
    "CONNECT h:1 HTTP/1.1\r\nHost: h",
    "BREW / HTTP/1.1\r\nHost: h",
    "get / HTTP/1.1\r\nHost: h",
    "GET  / HTTP/1.1\r\nHost: h",
    "GET /a b HTTP/1.1\r\nHost: h",
    "GET /#x HTTP/1.1\r\nHost: h",
    "GET /\xe9 HTTP/1.1\r\nHost: h",
    "GET / HTTP/1.1\nHost: h",
    "GET / HTTP/1.1",
    "GET / HTTP/1.1\r\nX: 1",
    ...[
      "Host: i",
      "Content-Length: 1\r\nContent-Length: 1",
      "Content-Length: +1",
      "Content-Length: 1, 1",
      "Content-Length:",
      "Transfer-Encoding: chunked",
      "Connection: upgrade",
      "Connection: keep-alive, x",
      "Upgrade: h2c",
      "Expect: 100-continue",
      "TE: trailers",
      "Trailer: x",
      "X : 1",
      "X: a\0",
      " folded: 1",
      "nocolon",
    ].map((line) => `GET / HTTP/1.1\r\n${host}\r\n${line}`),
  ];
  for (const text of rest) assert.equal(readPlainHead(text), null, JSON.stringify(text));
});

interface Seen {
  method: string;
  target: string;
  rawHeaders: string[];
  length: number | null;
}

/** The same bytes as parsed by Node's server; null when it refuses them. */
function readWithNode(text: string): Promise<Seen | null> {
  return new Promise((resolve) => {
    const server = createServer((req) => {
      const length = req.headers["content-length"];
      resolve({
        method: req.method ?? "",
        target: req.url ?? "",
        rawHeaders: req.rawHeaders,
        length: length === undefined ? null : Number(length),
      });
      theirs.destroy();
    });
    server.maxHeadersCount = 0;
    server.on("clientError", () => resolve(null));
    const [ours, theirs] = duplexPair();
    ours.on("error", () => {});
    theirs.on("error", () => {});
    server.emit("connection", theirs);
    ours.write(Buffer.from(`${text}\r\n\r\n`, "latin1"));
    ours.end();
  });
}

const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/);
const value = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{0,20}$/);
const plain = fc
  .record({
    method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"),
    target: fc.stringMatching(/^\/[\x21\x22\x24-\x7e]{0,30}$/),
    fields: fc.array(fc.tuple(name, value), { maxLength: 6 }),
    length: fc.option(fc.nat(1000)),
  })
  .map(({ method, target, fields, length }) => {
    const lines = [["Host", "h"], ...fields, ...(length === null ? [] : [["Content-Length", String(length)]])];
    return `${method} ${target} HTTP/1.1\r\n${lines.map(([key, text]) => `${key}: ${text}`).join("\r\n")}`;
  });
const damage = fc.array(
  fc.record({
    at: fc.nat(300),
    drop: fc.nat(3),
    add: fc.constantFrom(
      "",
      "\r",
      "\n",
      "\r\n",
      " ",
      "\0",
      ":",
      "0",
      ",",
      "Content-Length: 3\r\n",
      "Host: x\r\n",
      "\t",
      "\x7f",
    ),
  }),
  { maxLength: 3 },
);

test("whatever is taken here, Node would have read the same way", async () => {
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(plain, damage, async (text, changes) => {
      let damaged = text;
      for (const { at, drop, add } of changes) {
        const place = at % (damaged.length + 1);
        damaged = damaged.slice(0, place) + add + damaged.slice(place + drop);
      }
      if (damaged.includes("\r\n\r\n")) return;
      const mine = readPlainHead(damaged);
      if (mine === null) return;
      taken += 1;
      const { method, target, rawHeaders, contentLength } = mine;
      assert.deepEqual(await readWithNode(damaged), { method, target, rawHeaders, length: contentLength });
    }),
    { numRuns: LONG ? 20_000 : 1000 },
  );
  assert.ok(taken > 200, `only ${taken} heads were compared`);
});
