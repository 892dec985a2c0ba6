import assert from "node:assert/strict";
import { test } from "node:test";
import { HOUR_MS } from "../../lib/time/clock.ts";
import type { Store } from "../../store/store.ts";
import * as documents from "./client-document.ts";

const ID = "https://program.example/client.json";

/** Documents from a host that has one, with the counters of the store. */
function openDocuments() {
  let nowMs = 1_000_000_000;
  const kept = new Map<string, unknown>();
  const tries = new Map<string, number>();
  const fetches: string[] = [];
  const store = {
    oauth: {
      find: async (_: string, id: string) => kept.get(id),
      put: async (_: string, id: string, value: unknown) => kept.set(id, value),
    },
    signInTries: {
      count: async (limits: { key: string; max: number }[]) => {
        if (limits.some(({ key, max }) => (tries.get(key) ?? 0) >= max)) return "exceeded";
        for (const { key } of limits) tries.set(key, (tries.get(key) ?? 0) + 1);
        return "allowed";
      },
    },
  } as unknown as Store;
  const { find } = documents.createClientDocuments({
    ...{ store, scopes: new Set<string>(), loopback: false, log: { warn() {} } },
    clock: { now: () => nowMs } as documents.ClientDocumentsDeps["clock"],
    outbound: {
      async request(address: string) {
        fetches.push(address);
        const text = JSON.stringify({ client_id: ID, redirect_uris: ["https://program.example/back"] });
        return { status: address === ID ? 200 : 404, contentType: "application/json", text };
      },
    } as unknown as documents.ClientDocumentsDeps["outbound"],
  });
  const flood = async (from: (at: number) => string): Promise<void> => {
    for (let at = 0; at < 40; at += 1) await documents.askedFrom(from(at), () => find(`https://program.example/${at}`));
  };
  return { find, flood, fetches, pass: (ms: number) => (nowMs += ms) };
}

test("one address cannot use up the fetches of a host: others still find its program", async () => {
  const { find, flood, fetches } = openDocuments();
  await flood(() => "203.0.113.9");
  assert.ok(fetches.length <= 5, String(fetches.length));
  await documents.askedFrom("203.0.113.9", () => find(ID));
  assert.ok(
    await documents.askedFrom("198.51.100.1", () => find(ID)),
    "a refusal of one address is not one of the document",
  );
});

test("a program that is known stays known while the fetches of its host are used up, and is fetched once at a time", async () => {
  const { find, flood, fetches, pass } = openDocuments();
  assert.ok(await documents.askedFrom("198.51.100.1", () => find(ID)));
  pass(2 * HOUR_MS);
  await flood((at) => `${at + 11}.0.113.9`);
  const before = fetches.length;
  await Promise.all(Array.from({ length: 10 }, () => documents.askedFrom("203.0.113.9", () => find(ID))));
  assert.deepEqual(fetches.slice(before), [ID]);
});
