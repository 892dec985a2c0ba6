/** What a workload or a server may do to the egress proxy by frames of HTTP/2 that no honest program sends. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { ask, closed, headOf, http2Place, textOf } from "../outbound/http2-place.ts";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const TYPE = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7, continuation: 9 } as const;
const [END_STREAM, END_HEADERS] = [1, 4];

function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Each header as a literal that nothing indexes; texts of at most 126 bytes. */
const block = (raw: readonly string[]): Buffer =>
  Buffer.concat(
    raw.flatMap((text, index) => [
      ...(index % 2 === 0 ? [Buffer.from([0])] : []),
      Buffer.from([Buffer.byteLength(text, "latin1")]),
      Buffer.from(text, "latin1"),
    ]),
  );

const GET = [":method", "GET", ":scheme", "https", ":authority", "api.test", ":path", "/"];
const begin = (): Buffer => Buffer.concat([Buffer.from(PREFACE), frame(TYPE.settings, 0, 0)]);

/** The types of the frames that come, until one of `last` or the end of the connection. */
async function typesUntil(socket: TLSSocket, last: readonly number[]): Promise<number[]> {
  const types: number[] = [];
  let rest = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      types.push(rest.readUInt8(3));
      rest = rest.subarray(9 + rest.readUIntBE(0, 3));
      if (last.includes(types.at(-1) ?? -1)) return types;
    }
  }
  return types;
}

const DROPPED = ["a line in a value", "a space in a name"];

test("a head that HTTP/2 forbids, or that is too large, reaches no server", async (t) => {
  const seen: string[] = [];
  const { secure, open } = await http2Place(t, (stream, headers) => {
    seen.push(Object.keys(headers).sort().join());
    stream.respond({ ":status": 200 });
    stream.end("fine");
  });
  const large = Array.from({ length: 600 }, (_, n) => [`x-${n}`, "y".repeat(120)]).flat();
  const heads: Record<string, string[]> = {
    "a line in a value": [...GET, "x-a", "1\r\nx-b: 2"],
    "a line in a path": [...GET.slice(0, 6), ":path", "/ HTTP/1.1\r\nx-b: 2"],
    "a second path": [...GET, ":path", "/second"],
    "a second host": [":authority", "plain.test", ...GET],
    "a pseudo header after others": [...GET.slice(0, 6), "x-a", "1", ":path", "/late"],
    "a space in a name": [...GET, "x a", "1"],
    "two lengths": [...GET, "content-length", "5", "content-length", "6"],
    "headers of a connection": [...GET, "connection", "keep-alive"],
    chunks: [...GET, "transfer-encoding", "chunked"],
    "other than trailers in te": [...GET, "te", "gzip"],
    "too many headers": [...GET, ...large],
  };
  for (const [name, head] of Object.entries(heads)) {
    const socket = await secure();
    const bytes = block(head);
    const parts = Array.from({ length: Math.ceil(bytes.length / 16_000) }, (_, n) =>
      bytes.subarray(n * 16_000, (n + 1) * 16_000),
    );
    const frames = parts.map((part, n) =>
      frame(
        n === 0 ? TYPE.headers : TYPE.continuation,
        (n === 0 ? END_STREAM : 0) | (n === parts.length - 1 ? END_HEADERS : 0),
        1,
        part,
      ),
    );
    socket.write(Buffer.concat([begin(), ...frames]));
    const last = (await typesUntil(socket, [TYPE.reset, TYPE.goaway, TYPE.headers])).at(-1);
    // A header that is none is left out, and the request is as good as any.
    if (last === TYPE.headers) assert.ok(DROPPED.includes(name), name);
    else assert.ok(last === TYPE.reset || last === TYPE.goaway, name);
    socket.destroy();
  }
  assert.deepEqual([...new Set(seen)], [":authority,:method,:path,:scheme,authorization"]);
  assert.equal(await textOf(ask(await open())), "fine");
});

test("a workload that resets its requests at once, without end, loses the connection", async (t) => {
  let begun = 0;
  const { secure, open } = await http2Place(t, (stream, { ":path": path }) => {
    begun += 1;
    if (path !== "/fine") return;
    stream.respond({ ":status": 200 });
    stream.end("fine");
  });
  const socket = await secure();
  socket.write(begin());
  const pairs = Array.from({ length: 5000 }, (_, n) => [
    frame(TYPE.headers, END_STREAM | END_HEADERS, 2 * n + 1, block(GET)),
    frame(TYPE.reset, 0, 2 * n + 1, Buffer.from([0, 0, 0, 8])),
  ]);
  const ended = typesUntil(socket, [TYPE.goaway]);
  socket.write(Buffer.concat(pairs.flat()));
  await ended;
  assert.ok(begun < 1000, `${begun} requests`);
  assert.equal(await textOf(ask(await open(), { ":path": "/fine" })), "fine");
});

test("a server whose answer has no end, or is no answer, costs the request and nothing else", async (t) => {
  const head = block([":status", "200"]);
  const endless = frame(TYPE.continuation, 0, 1, block(["x-a", "y".repeat(120)]));
  const settings = frame(TYPE.settings, 0, 0);
  let answer: (socket: TLSSocket) => void = () => {};
  const { open } = await http2Place(t, () => {}, {
    raw: (socket) => {
      let seen = Buffer.alloc(0);
      socket.write(settings);
      socket.on("data", (chunk: Buffer) => {
        const isAnswered = seen.includes("api.test");
        seen = Buffer.concat([seen, chunk]);
        // Huffman coding hides the name; the fourth frame is the request's head.
        if (!isAnswered && seen.length > 60) {
          seen = Buffer.concat([seen, Buffer.from("api.test")]);
          answer(socket);
        }
      });
    },
  });
  let sent = 0;
  const answers: Record<string, typeof answer> = {
    "endless heads": (socket) => {
      socket.write(frame(TYPE.headers, 0, 1, head));
      const go = (): void => {
        while (!socket.destroyed) {
          sent += endless.length;
          if (!socket.write(endless)) return void socket.once("drain", go);
        }
      };
      go();
    },
    "a body without a head": (socket) => socket.write(frame(TYPE.data, END_STREAM, 1, Buffer.from("x"))),
    "no status": (socket) => socket.write(frame(TYPE.headers, END_STREAM | END_HEADERS, 1, block(["x-a", "1"]))),
    "a status that is none": (socket) =>
      socket.write(frame(TYPE.headers, END_STREAM | END_HEADERS, 1, block([":status", "999"]))),
    "no frames": (socket) => socket.write("HTTP/1.1 200 OK\r\n\r\n"),
    "the end": (socket) => socket.end(),
  };
  for (const [name, each] of Object.entries(answers)) {
    answer = each;
    const asked = ask(await open());
    const { ":status": status } = await Promise.race([headOf(asked), closed(asked).then(() => ({ ":status": 0 }))]);
    assert.ok(status === 502 || asked.rstCode !== 0, `${name}: ${status} ${asked.rstCode}`);
    asked.close();
  }
  assert.ok(sent < 64 * 2 ** 20, `${sent} bytes`);
});

test("an answer of HTTP/1.1 that HTTP/2 cannot carry is told, not thrown", async (t) => {
  let answer = "";
  const { open } = await http2Place(t, () => {}, {
    protocol: "http/1.1",
    raw: (socket) => socket.once("data", () => socket.end(answer)),
  });
  const session = await open();
  answer = "HTTP/1.1 999 no\r\nContent-Length: 0\r\n\r\n";
  assert.equal((await headOf(ask(session)))["proxy-error"], "answer_malformed");
  answer =
    "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nETag: 1\r\nETag: 2\r\nContent-Length: 0\r\n\r\n";
  const doubled = ask(session);
  const [{ ":status": status }, , raw] = (await once(doubled, "response")) as [
    Record<string, unknown>,
    number,
    string[],
  ];
  assert.deepEqual([status, raw.filter((text) => text === "etag").length], [200, 2]);
});
