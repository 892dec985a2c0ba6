/** Servers that are killed and return, a database that restarts, and a network that breaks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LONG } from "../long.ts";
import { agrees } from "./agreement.ts";
import type { Cluster } from "./cluster.ts";
import type { Member } from "./member.ts";
import { deploy, deployed, exec, markOf, sandboxOf, until, wordOf } from "./use.ts";

const LOST: readonly (readonly [lost: "a" | "b", kept: "a" | "b", box: string])[] = [
  ["a", "b", "box"],
  ["b", "a", "other"],
];

export function losing(get: () => Cluster<"a" | "b">): void {
  test("a server that the others cannot reach answers for its own; the others say which server is away", async (t) => {
    const cluster = get();
    const { a, b } = cluster.members;
    t.after(() => cluster.mend("a"));
    for (const how of ["refused", "silent"] as const) {
      cluster.cut("a", how);
      assert.equal(await markOf(a, "box"), "box alive");
      await refuses(b, "box", "a");
      assert.equal(await markOf(b, "other"), "other alive");
      cluster.mend("a");
      assert.equal(await markOf(b, "box"), "box alive");
    }
    await agrees(cluster);
  });

  test("a restart of the database loses and doubles nothing", async () => {
    const cluster = get();
    await cluster.postgres.crash();
    for (const member of cluster.all) {
      // A server that is connecting anew may refuse for a moment.
      await until(
        () => exec(member, "box", "true"),
        ({ status }) => status === 200,
      );
      assert.equal(await markOf(member, "box"), "box alive");
      assert.equal(await markOf(member, "other"), "other alive");
    }
    await agrees(cluster);
  });

  // Half a minute each, until the others count it as lost.
  for (const [lost, kept, box] of LONG ? LOST : LOST.slice(0, 1)) {
    test(`the server ${lost} is killed, is counted as lost, and returns`, async (t) => {
      const cluster = get();
      const [gone, there] = [cluster.members[lost], cluster.members[kept]];
      t.after(() => gone.isUp || gone.start()); // also for the tests after a failed one
      await deploy(gone, gone, `agents/of-${lost}`, `from ${lost}`, { runtime: { memory: 256, minScale: 1 } });
      assert.equal((await deployed(gone, `agents/of-${lost}`)).status, "DEPLOYED");
      const before = gone.running().find(({ name }) => name === box);
      await gone.kill("SIGKILL");
      await refuses(there, box, lost);
      const seen = await until(
        () => sandboxOf(there, box),
        ({ status }) => status !== "DEPLOYED",
      );
      assert.equal(seen.status, "DEACTIVATED", JSON.stringify(seen));
      assert.ok(JSON.stringify(seen.events).includes(lost), JSON.stringify(seen.events));
      // What has no state moves; a sandbox waits for its server.
      assert.equal(await wordOf(there, `agents/of-${lost}`), `from ${lost}`);
      await gone.start();
      await until(
        () => sandboxOf(there, box),
        ({ status }) => status === "DEPLOYED",
      );
      for (const member of cluster.all) assert.equal(await markOf(member, box), `${box} alive`);
      assert.deepEqual(
        gone.running().find(({ name }) => name === box),
        before,
      );
      await agrees(cluster);
      assert.equal(await wordOf(gone, `agents/of-${lost}`), `from ${lost}`);
    });
  }
}

/** A sandbox of a server that is away: refused at once, with the name of the server. */
async function refuses(through: Member, box: string, away: string): Promise<void> {
  const { status, said } = await exec(through, box, "true");
  assert.equal(status, 503, said);
  assert.match(said, new RegExp(`\\b${away}\\b`), "the answer names the server");
}
