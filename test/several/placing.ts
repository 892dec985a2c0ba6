/** Where new workloads go, and servers that the operator takes out of service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { agrees } from "./agreement.ts";
import type { Cluster } from "./cluster.ts";
import { makeSandbox, until } from "./use.ts";

export function placing(get: () => Cluster<"a" | "b">): void {
  test("a drained server gets no new workloads and keeps those it has", async () => {
    const cluster = get();
    const { a, b } = cluster.members;
    await a.berth("nodes", "drain", "a");
    try {
      const { metadata } = await makeSandbox(a, "elsewhere");
      await until(
        () => b.running().map(({ uid }) => uid),
        (uids) => uids.includes(metadata.uid),
      );
      assert.equal(metadata.node, "b");
      assert.match((await a.berth("sandbox", "list")).stdout, /elsewhere .*\bb\b/);
      assert.equal((await b.call("DELETE", "/sandboxes/elsewhere")).status, 200);
      await agrees(cluster);
    } finally {
      await b.berth("nodes", "undrain", "a");
    }
  });

  test("a server that is up is not removed", async () => {
    const { a } = get().members;
    await assert.rejects(a.berth("nodes", "remove", "b"), /Node b is live/);
    assert.match((await a.berth("nodes", "list")).stdout, /\bb\b/);
  });
}
