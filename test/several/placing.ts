/** Where new workloads go, and servers that the operator takes out of service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { agrees } from "./agreement.ts";
import type { Cluster } from "./cluster.ts";
import { deploy, deployed, makeSandbox, run, until, wordOf } from "./use.ts";

export function placing(get: () => Cluster<"a" | "b">): void {
  test("a drained server gets no new workloads, hands on its agents and keeps its sandboxes", async () => {
    const cluster = get();
    const { a, b } = cluster.members;
    await makeSandbox(a, "kept");
    await deploy(a, a, "agents/handed", "handed on");
    assert.equal((await deployed(a, "agents/handed")).status, "DEPLOYED");
    const said = await a.berth("nodes", "drain", "a");
    assert.match(said.stdout, /kept/);
    try {
      await until(
        async () => (await b.call("GET", "/agents/handed")).body,
        ({ metadata, status }) => metadata.node === "b" && status === "DEPLOYED",
      );
      for (const member of [a, b]) assert.equal(await wordOf(member, "agents/handed"), "handed on");
      assert.equal(await run(b, "kept", "echo here"), "here");
      const { metadata } = await makeSandbox(a, "elsewhere");
      await until(
        () => b.running().map(({ uid }) => uid),
        (uids) => uids.includes(metadata.uid),
      );
      assert.equal(metadata.node, "b");
      assert.match((await a.berth("sandbox", "list")).stdout, /elsewhere .*\bb\b/);
      for (const path of ["/sandboxes/elsewhere", "/sandboxes/kept", "/agents/handed"])
        assert.equal((await b.call("DELETE", path)).status, 200);
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
