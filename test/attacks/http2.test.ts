/**
 * HTTP/2 clients that misbehave, at frame level. Requests go on to workloads as HTTP/1.1, where a line break or a second
 * length would become a request of the attacker's making on a connection that others use next.
 */
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createHttp2Door } from "../../src/http/http2/http2-door.ts";
import {
  AUTH,
  answering,
  eventually,
  exchange,
  listen,
  OK,
  RawClient,
  type RawUpstream,
  rawUpstream,
  startTestGateway,
  type TestGateway,
} from "../gateway/harness.ts";

const [DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, CONTINUATION] = [0, 1, 3, 4, 7, 9] as const;
const [END_STREAM, END_HEADERS] = [1, 4] as const;
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

type Field = [name: string, value: string];

function frame(type: number, flags: number, stream: number, payload: string | Buffer = ""): Buffer {
  const body = Buffer.isBuffer(payload) ? payload : Buffer.from(payload, "latin1");
  const start = Buffer.alloc(9);
  start.writeUIntBE(body.length, 0, 3);
  start.writeUInt8(type, 3);
  start.writeUInt8(flags, 4);
  start.writeUInt32BE(stream, 5);
  return Buffer.concat([start, body]);
}

/** Literal fields without an index: HPACK lets a client write any byte. */
const block = (fields: readonly Field[]): Buffer =>
  Buffer.concat(fields.map(([name, value]) => Buffer.concat([Buffer.from([0]), text(name), text(value)])));

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  // Longer texts have a length of several bytes, the first of which is full.
  const length =
    bytes.length < 127 ? [bytes.length] : [127, ((bytes.length - 127) & 127) | 128, (bytes.length - 127) >> 7];
  return Buffer.concat([Buffer.from(length), bytes]);
}

const request = (...more: Field[]): Field[] => {
  const own = new Set(more.map(([name]) => name));
  const usual: Field[] = [
    [":method", "POST"],
    [":scheme", "https"],
    [":authority", "h.test"],
    [":path", "/ws/agents/a/x"],
  ];
  const pseudo = more.filter(([name]) => name.startsWith(":"));
  return [
    ...usual.filter(([name]) => !own.has(name)),
    ...pseudo,
    ["x-service-authorization", "Bearer good"],
    ...more.filter(([name]) => !name.startsWith(":")),
  ];
};

interface Place {
  gw: TestGateway;
  up: RawUpstream;
  /** Sends frames on a connection of its own; resolves with the frames that came back once `isEnough`. */
  send(frames: Buffer[], isEnough: (types: number[]) => boolean): Promise<{ types: number[]; closed: boolean }>;
}

async function place(t: TestContext): Promise<Place> {
  const up = await rawUpstream(answering(OK));
  const gw = await startTestGateway({ upstream: up.port });
  const { gateway } = gw;
  const door = createHttp2Door({
    request: (req, res, options) => gateway.request(req, res, gateway.route(req), options),
    webSocket: (req, res) => gateway.webSocket(req, res, gateway.route(req)),
  });
  const server = createServer((socket: Socket) => door.accept(socket));
  const port = await listen(server);
  t.after(async () => {
    door.destroy();
    server.close();
    await gw[Symbol.asyncDispose]();
    await up[Symbol.asyncDispose]();
  });
  return {
    gw,
    up,
    async send(frames, isEnough) {
      using client = await RawClient.to(port);
      client.socket.write(Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0), ...frames]));
      await client.until((received) => client.ended || isEnough(typesIn(received))).catch(() => {});
      return { types: typesIn(client.received), closed: client.ended || client.closed };
    },
  };
}

/** The types of the whole frames in the text, except those of a handshake. */
function typesIn(received: string): number[] {
  const bytes = Buffer.from(received, "latin1");
  const types: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) types.push(bytes[at + 3] ?? -1);
  return types.filter((type) => type !== SETTINGS);
}

const ENDS: readonly number[] = [DATA, RST_STREAM, GOAWAY];
const isOver = (types: number[]): boolean => types.some((type) => ENDS.includes(type));
const NEXT = `GET /ws/agents/a/next HTTP/1.1\r\nHost: h\r\n${AUTH}Connection: close\r\n\r\n`;
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: inside\r\n\r\n";

/** Each is one request; what stands behind its head is sent as its body. */
const REQUESTS: Record<string, { fields: Field[]; body?: string }> = {
  "a line break in a value": { fields: request(["x-a", `1\r\n\r\n${SMUGGLED}`]) },
  "a bare line feed in a value": { fields: request(["x-a", "1\nX-Smuggled: 1"]) },
  "a null byte in a value": { fields: request(["x-a", "1\0X-Smuggled: 1"]) },
  "a line break in a name": { fields: request(["x-a\r\nx-smuggled", "1"]) },
  "a colon in a name": { fields: request(["x-smuggled: 1\r\nx-a", "1"]) },
  "a space in a name": { fields: request(["x-smuggled x", "1"]) },
  "a name in capitals": { fields: request(["X-Smuggled", "1"]) },
  "a line break in the path": { fields: request([":path", `/ws/agents/a/x HTTP/1.1\r\n\r\n${SMUGGLED}`]) },
  "a space in the path": { fields: request([":path", "/ws/agents/a/x HTTP/1.1 /smuggled"]) },
  "a path that is an address": { fields: request([":path", "http://inside/smuggled"]) },
  "a line break in the method": { fields: request([":method", `GET /smuggled HTTP/1.1\r\nX: `]) },
  "a line break in the authority": { fields: request([":authority", "h.test\r\nX-Smuggled: 1"]) },
  "a path in the authority": { fields: request([":authority", "h.test/smuggled"]) },
  "two paths": { fields: [...request(), [":path", "/ws/agents/a/smuggled"]] },
  chunks: { fields: request(["transfer-encoding", "chunked"]), body: `0\r\n\r\n${SMUGGLED}` },
  "an upgrade": { fields: request(["connection", "upgrade"], ["upgrade", "websocket"]), body: SMUGGLED },
  "a field of a connection": { fields: request(["proxy-connection", "keep-alive"]) },
  "another coding of trailers": { fields: request(["te", "chunked"]) },
  "a length of nothing": { fields: request(["content-length", "0"]), body: SMUGGLED },
  "a length below the body's": { fields: request(["content-length", "1"]), body: SMUGGLED },
  "a length above the body's": { fields: request(["content-length", "400"]), body: "1" },
  "two lengths": { fields: request(["content-length", "1"], ["content-length", "2"]), body: SMUGGLED },
  "a list of lengths": { fields: request(["content-length", "1, 1"]), body: "1" },
  "a length with a sign": { fields: request(["content-length", "+1"]), body: "1" },
};

test("no request of HTTP/2 becomes another one at the workload", async (t) => {
  const { gw, up, send } = await place(t);
  const plain = [
    frame(HEADERS, END_HEADERS, 1, block(request(["content-length", "3"]))),
    frame(DATA, END_STREAM, 1, "a\r\n"),
  ];
  assert.ok((await send(plain, isOver)).types.includes(DATA), "a request without a fault is answered");
  assert.match(up.received.join(""), /^POST \/x HTTP\/1\.1\r\n[\s\S]*\r\na\r\n$/);
  for (const [what, { fields, body }] of Object.entries(REQUESTS)) {
    const head = frame(HEADERS, END_HEADERS | (body === undefined ? END_STREAM : 0), 1, block(fields));
    const frames = body === undefined ? [head] : [head, frame(DATA, END_STREAM, 1, body)];
    const { types, closed } = await send(frames, isOver);
    assert.ok(closed || types.length > 0, `${what}: ${types}`);
    assert.doesNotMatch(up.received.join("\n"), /smuggled/i, what);
    // The next request, which may use the same connection to the workload, gets its own answer.
    assert.match(await exchange(gw.port, NEXT), /^HTTP\/1\.1 200 OK/, what);
    const lines = up.received.flatMap((all) => all.split("\r\n").filter((line) => line.endsWith(" HTTP/1.1")));
    assert.ok(
      lines.every((line) => /^(?:POST \/x|GET \/next) HTTP\/1\.1$/.test(line)),
      `${what}: ${lines}`,
    );
  }
});

const FLOODS: Record<string, (at: number) => Buffer> = {
  "fields that never end": (at) =>
    at === 0
      ? frame(HEADERS, 0, 1, block(request()))
      : frame(CONTINUATION, 0, 1, block([[`x-${at}`, "v".repeat(100)]])),
  "empty data": (at) => (at === 0 ? frame(HEADERS, END_HEADERS, 1, block(request())) : frame(DATA, 0, 1)),
  "streams beyond the number": (at) => frame(HEADERS, END_HEADERS, at * 2 + 1, block(request())),
  "resets of its own streams": (at) =>
    Buffer.concat([
      frame(HEADERS, END_HEADERS, at * 2 + 1, block(request())),
      frame(RST_STREAM, 0, at * 2 + 1, Buffer.from([0, 0, 0, 8])),
    ]),
  // Increments of zero are errors of the stream, each of which the server would answer with a reset (MadeYouReset).
  "resets that the server is made to send": (at) =>
    Buffer.concat([
      frame(HEADERS, END_HEADERS, at * 2 + 1, block(request())),
      frame(8, 0, at * 2 + 1, Buffer.from([0, 0, 0, 0])),
    ]),
};

for (const [what, make] of Object.entries(FLOODS))
  test(`a flood of HTTP/2 frames ends its connection: ${what}`, async (t) => {
    const { gw, send } = await place(t);
    const { types, closed } = await send(
      Array.from({ length: 3000 }, (_, at) => make(at)),
      (found) => found.includes(GOAWAY),
    );
    assert.ok(closed || types.includes(GOAWAY), String(types.slice(0, 20)));
    assert.match(await exchange(gw.port, NEXT), /^HTTP\/1\.1 200 OK/);
    await eventually(() => gw.gateway.totals().open.requests === 0, "no request of the flood is left open");
  });
