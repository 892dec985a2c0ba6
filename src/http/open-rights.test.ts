import assert from "node:assert/strict";
import { test } from "node:test";
import { HOUR_MS } from "../lib/time/clock.ts";
import { OpenRights, type Revocable, type RightsChange } from "./open-rights.ts";

interface Opened extends Revocable {
  looks: number;
  isRevoked: boolean;
}

function opened(uid: string, stands: () => Promise<boolean>, isClaimed = false): Opened {
  const one: Opened = {
    looks: 0,
    isRevoked: false,
    right: {
      uid,
      isClaimed,
      stands() {
        one.looks += 1;
        return stands();
      },
    },
    revoke() {
      one.isRevoked = true;
    },
  };
  return one;
}

/** Resolves when the pass that this change begins has looked at everything that is due. */
async function passed(rights: OpenRights, change: RightsChange, last: Promise<unknown>): Promise<void> {
  rights.changed(change);
  await last;
}

test("a change looks at what it is about, many changes of one moment at once, and ends what has no right", async (t) => {
  const done = { all: Promise.withResolvers<void>(), uid: Promise.withResolvers<void>() };
  let phase: keyof typeof done = "uid";
  const good = opened("a", async () => true);
  const bad = opened("b", async () => false);
  const preview = opened("c", async () => false, true);
  const unknown = opened("d", () => Promise.reject(new Error("the database does not answer")));
  const last = opened("b", async () => {
    done[phase].resolve();
    return true;
  });
  const rights = new OpenRights(
    () => [good, { right: null, revoke: assert.fail }, bad, preview, unknown, last],
    HOUR_MS,
  );
  // Nothing else keeps this process alive, and the timers of a server do not.
  const alive = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(alive));
  t.after(() => rights.stop());

  await passed(rights, { uid: "b" }, done.uid.promise);
  assert.deepEqual([good.looks, bad.isRevoked, preview.looks], [0, true, 0]);
  phase = "all";
  for (let n = 0; n < 100; n += 1) rights.changed("claims");
  await passed(rights, "all", done.all.promise);
  assert.deepEqual([good.looks, preview.looks, unknown.looks], [1, 1, 1]);
  assert.deepEqual([good.isRevoked, preview.isRevoked, unknown.isRevoked], [false, true, false]);
});

test("changes that come all the time leave the server most of its time", async (t) => {
  const TAKEN_MS = 20;
  let looks = 0;
  const seen = Promise.withResolvers<void>();
  const slow = opened("a", async () => {
    looks += 1;
    if (looks === 2) seen.resolve();
    const until = performance.now() + TAKEN_MS;
    while (performance.now() < until);
    return true;
  });
  const rights = new OpenRights(() => [slow], HOUR_MS);
  t.after(() => rights.stop());
  const begun = performance.now();
  rights.changed("all");
  const flood = setInterval(() => rights.changed("all"), 0);
  t.after(() => clearInterval(flood));
  await seen.promise;
  assert.ok(performance.now() - begun >= TAKEN_MS * 4, "a rest lies between two passes");
});
