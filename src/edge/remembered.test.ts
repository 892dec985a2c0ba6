/** What an edge process keeps of the owner's answers: nothing that another's change makes untrue, and no text of clients. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Workload } from "../gateway/deps.ts";
import { createCallers } from "./process/callers.ts";
import type { Ask } from "./process/questions.ts";
import { createRoutes } from "./process/routes.ts";

const named = (uid: string): Workload => ({
  ...{ kind: "agent", uid, workspace: "main", name: uid, public: true, enabled: true },
  ...{ revisions: null, elsewhere: null, door: 80, triggers: [], preview: null },
});

test("a path of a trigger that another workload claims leads there from then on", async () => {
  let holder = "first";
  const ask = (async () => ({ value: { workload: named(holder), instances: [] }, fresh: true })) as unknown as Ask;
  const { resolve, forgetAddresses } = createRoutes(ask, { now: () => 0 });
  const uidBehind = async (): Promise<string | undefined> =>
    (await resolve({ by: "trigger", workspace: "main", path: "/hooks/secret" }))?.uid;
  assert.equal(await uidBehind(), "first");
  holder = "second";
  assert.equal(await uidBehind(), "first", "an address is kept until the owner tells of a change");
  // The new workload claims a longer path. The first one is as it was.
  forgetAddresses();
  assert.equal(await uidBehind(), "second");
});

test("many texts that are no credentials leave those of callers remembered", async () => {
  const asked: string[] = [];
  const ask = (async (_name: string, { token }: { token: string }) => {
    asked.push(token);
    const principal = { id: "p", type: "user", method: "api_key", keyId: "k" };
    return { value: token === "right" ? { principal, untilMs: Number.MAX_SAFE_INTEGER } : null, fresh: true };
  }) as unknown as Ask;
  const { authenticate, forget } = createCallers(ask, { now: () => 0 });
  const isKnown = async (token: string): Promise<boolean> => (await authenticate(token)) !== null;
  assert.equal(await isKnown("right"), true);
  for (let i = 0; i < 11_000; i += 1) assert.equal(await isKnown(`wrong ${i}`), false);
  asked.length = 0;
  assert.equal(await isKnown("right"), true);
  assert.equal(await isKnown("wrong 10999"), false);
  assert.deepEqual(asked, [], "both are known");
  forget();
  assert.equal(await isKnown("wrong 10999"), false);
  assert.deepEqual(asked, ["wrong 10999"], "a changed identity may have made it a credential");
});
