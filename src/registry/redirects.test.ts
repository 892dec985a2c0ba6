import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { test } from "node:test";
import { Repository } from "./repository.ts";
import { createTransport, type Transport } from "./transport.ts";

test("a registry's redirect to an inner address is judged like the registry itself, by name and by number", async (t) => {
  let reached = 0;
  const inner = createServer((_, res) => {
    reached += 1;
    res.end("secret");
  }).listen(0, "127.0.0.1");
  await once(inner, "listening");
  t.after(() => inner.close());
  const { port } = inner.address() as AddressInfo;
  const outside = createTransport({ privateAddresses: false });
  t.after(() => outside.stop());
  for (const host of ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "169.254.169.254"]) {
    const hops: string[] = [];
    // The registry, whose own address is public, answers with a redirect.
    const transport: Transport = {
      ...outside,
      send(url, request) {
        hops.push(url.host);
        if (url.hostname !== "registry.example") return outside.send(url, request);
        const headers = { location: `http://${host}:${port}/v2/x` };
        return Promise.resolve({ status: 307, headers, body: Readable.from([]) });
      },
    };
    const options = {
      host: "registry.example",
      plain: true,
      path: "acme/tool",
      credentials: async () => null,
      transport,
    };
    const signal = AbortSignal.timeout(30_000);
    await assert.rejects(new Repository(options).send("manifests/1", { signal }), { reason: "refused" }, host);
    assert.equal(hops.length, 2, "the redirect was followed as far as the judgement");
  }
  assert.equal(reached, 0);
});
