import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { onFirstBytes } from "./first-bytes.ts";

/** Sends the pieces one by one, each once the one before was read; resolves with what the server got to see. */
async function firstOf(pieces: readonly Buffer[]): Promise<{ first: Buffer; isTls: boolean; unread: Buffer }> {
  await using listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const client = connect((listener.address() as AddressInfo).port, "127.0.0.1");
  try {
    const [socket] = (await once(listener, "connection")) as [Socket];
    const taken = new Promise<{ first: Buffer; isTls: boolean; unread: Buffer }>((resolve) => {
      onFirstBytes(socket, (first, isTls) => resolve({ first, isTls, unread: socket.read() }));
    });
    for (const piece of pieces) {
      const readable = once(socket, "readable");
      client.write(piece);
      await readable;
    }
    return await taken;
  } finally {
    client.destroy();
  }
}

test("a ClientHello that comes in several packets is seen whole, and left unread", async () => {
  const record = Buffer.concat([Buffer.from([0x16, 3, 1, 0, 14]), Buffer.from("--acme-tls/1--")]);
  for (const cuts of [[3], [5], [9], [2, 12]]) {
    const pieces = [...cuts, record.length].map((end, at) => record.subarray(cuts[at - 1] ?? 0, end));
    const { first, isTls, unread } = await firstOf(pieces);
    assert.deepEqual([first.toString(), isTls, unread.toString()], [record.toString(), true, record.toString()]);
  }
});

test("plain HTTP, and a record longer than TLS has, are passed on with their first bytes", async () => {
  assert.equal((await firstOf([Buffer.from("G")])).isTls, false);
  const { first, isTls } = await firstOf([Buffer.from([0x16, 3, 1, 0xff, 0xff])]);
  assert.deepEqual([first.length, isTls], [5, true]);
});
