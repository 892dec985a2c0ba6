import assert from "node:assert/strict";
import { test } from "node:test";
import type { Downstream, DownstreamEvents } from "../../http/downstream.ts";
import { ClientStream } from "./client-stream.ts";

/** A client that takes nothing more. */
function fullClient() {
  const sent: string[] = [];
  let events: DownstreamEvents | null = null;
  const down = {
    attach: (to: DownstreamEvents) => {
      events = to;
    },
    write: (chunk: Buffer) => sent.push(chunk.toString()) < 0,
    flush: () => false,
  } as unknown as Downstream;
  return { stream: new ClientStream(down, () => {}), sent, events: () => events as DownstreamEvents | null };
}

test("all servers that share a stream go on when the client reads again", { timeout: 10_000 }, async () => {
  const { stream, sent, events } = fullClient();
  const writes = [stream.write(1), stream.write(2)];
  events()?.onClientDrain();
  await Promise.all(writes);
  assert.equal(sent.length, 2);
});

test("nobody waits for a client that is gone", { timeout: 10_000 }, async () => {
  const { stream, sent, events } = fullClient();
  const first = stream.write(1);
  events()?.onClientGone();
  await first;
  await stream.write(2);
  assert.equal(sent.length, 1);
});
