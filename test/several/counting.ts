/** Many sandboxes over all servers: each one stays the same while servers die, return and are asked for each other's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { agrees } from "./agreement.ts";
import type { Cluster } from "./cluster.ts";
import type { Member } from "./member.ts";
import { exec, makeSandbox, mark, markOf, until } from "./use.ts";

/** Requests at once. */
const AT_ONCE = 4;

/** `harm` "all": the network between the servers breaks and the database restarts, too, which `losing` tests for two. */
export function counting(get: () => Cluster<string>, count: number, harm: "kills" | "all" = "kills"): void {
  const names = Array.from({ length: count }, (_, n) => `many-${n}`);
  /** A server for each sandbox; `shift` chooses another one. */
  const memberFor = (name: string, shift: number): Member => {
    const { all } = get();
    return all[(names.indexOf(name) + shift) % all.length] ?? assert.fail();
  };

  /** Every sandbox answers with its own file and process, and nothing is doubled. */
  const isWhole = async (shift: number): Promise<void> => {
    await inTurn(names, async (name) => {
      const through = memberFor(name, shift);
      // A server that returns, or connects anew, may refuse for a moment.
      await until(
        () => exec(through, name, "true"),
        ({ status }) => status === 200,
      );
      assert.equal(await markOf(through, name), alive(name));
    });
    await agrees(get());
  };

  test(`${count} sandboxes, made and used through all servers`, async () => {
    await inTurn(names, async (name) => {
      await makeSandbox(memberFor(name, 0), name);
      assert.equal(await mark(memberFor(name, 1), name), name);
    });
    await agrees(get());
    if (get().isShared) return;
    const perMember = get().all.map((member) => member.running().filter(({ name }) => names.includes(name)).length);
    assert.equal(
      perMember.reduce((sum, each) => sum + each),
      count,
    );
    assert.ok(
      perMember.every((each) => each >= Math.floor(count / perMember.length)),
      `${perMember}`,
    );
  });

  test("each server is killed and returns: every sandbox is the same, through every server", async () => {
    const { all } = get();
    for (const member of all) {
      await member.kill("SIGKILL");
      const others = all.filter((each) => each !== member);
      const theirs = names.filter((name) => others.some((other) => other.running().some((each) => each.name === name)));
      await inTurn(theirs, async (name) => assert.equal(await markOf(others[0] ?? assert.fail(), name), alive(name)));
      await member.start();
      await isWhole(all.indexOf(member));
    }
  });

  test("each server is cut off from the others and found again", { skip: harm === "kills" }, async () => {
    const cluster = get();
    for (const member of cluster.all) {
      cluster.cut(member.name, "refused");
      const own = names.filter((name) => member.running().some((each) => each.name === name));
      await inTurn(own, async (name) => assert.equal(await markOf(member, name), alive(name)));
      cluster.mend(member.name);
      await isWhole(cluster.all.indexOf(member) + 1);
    }
  });

  test("the database restarts: every sandbox is the same, through every server", {
    skip: harm === "kills",
  }, async () => {
    await get().postgres.crash();
    await isWhole(1);
  });

  test("sandboxes that are deleted through other servers are gone", async () => {
    await inTurn(names, async (name) =>
      assert.equal((await memberFor(name, 1).call("DELETE", `/sandboxes/${name}`)).status, 200),
    );
    await until(
      () => get().all.flatMap((member) => member.running().filter(({ name }) => names.includes(name))),
      ({ length }) => length === 0,
    );
    await agrees(get());
  });
}

const alive = (name: string): string => `${name} alive`;

async function inTurn(names: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> {
  const left = names.toReversed();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let name = left.pop(); name !== undefined; name = left.pop()) await work(name);
    }),
  );
}
