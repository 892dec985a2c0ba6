/** Resizing of sandboxes: what the API allows and refuses, and what the record and the machine then say. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Resource } from "../../../src/store/resources/resource.ts";
import { FakeMachine, fakeDriver } from "../../fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../../platform.ts";

let usedMb = 1;
const machine = new FakeMachine({ images: ["service/base-image:latest"], usedMb: () => usedMb });
let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform({ driver: fakeDriver(machine) });
});
after(async () => {
  await platform?.stop();
  await machine.dispose();
});

const resize = (name: string, body: unknown) => platform.call("POST", `/sandboxes/${name}/resize`, { body });

async function stored(name: string): Promise<Resource> {
  const scope = { workspace: "main", kind: "sandbox", parent: "" };
  return (await platform.app.store.resources.get(scope, name)) ?? assert.fail();
}

async function create(name: string, runtime: object = {}): Promise<string> {
  const body = { metadata: { name }, spec: { runtime: { memory: 512, ...runtime } } };
  const made = await platform.call("POST", "/sandboxes", { body });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  return (await stored(name)).uid;
}

const limitsOf = (uid: string) => machine.workloads.get(uid)?.observed.limits;
const bornAt = (uid: string) => machine.workloads.get(uid)?.observed.createdAt;

test("a running sandbox gets other limits without a restart, and its record follows", async () => {
  const uid = await create("box");
  const born = bornAt(uid);
  const grown = await resize("box", { memory: 4096 });
  assert.deepEqual([grown.status, grown.body], [200, { name: "box", memory: 4096, cpus: 2 }]);
  assert.deepEqual(limitsOf(uid), { memoryMb: 4096, cpus: 2 });
  const shrunk = await resize("box", { memory: 256, cpus: 0.5 });
  assert.deepEqual(shrunk.body, { name: "box", memory: 256, cpus: 0.5 });
  assert.deepEqual((await resize("box", { memory: 4096 })).body.cpus, 0.5, "named processors stay");
  const { body } = await platform.call("GET", "/sandboxes/box");
  assert.deepEqual([body.status, body.spec.runtime.memory, body.spec.runtime.cpus], ["DEPLOYED", 4096, 0.5]);
  assert.match(JSON.stringify(body.events), /memory 512 → 4096 MB, processors 0.25 → 2/);
  assert.equal(bornAt(uid), born, "it was not started anew");
});

test("less memory than is used is refused with the figure, and nothing changes", async () => {
  const uid = await create("full");
  usedMb = 300;
  const refused = await resize("full", { memory: 256 });
  usedMb = 1;
  assert.equal(refused.status, 409);
  assert.match(refused.body.message, /300 MB of memory are in use, and 256 MB were asked for/);
  assert.deepEqual(limitsOf(uid), { memoryMb: 512, cpus: 0.25 });
  assert.equal((await stored("full")).state.resize, undefined);
  assert.equal((await resize("full", { memory: 256 })).status, 200, "the next one is not held up");
});

test("what no machine here has, and what is no size, is refused", async () => {
  for (const body of [
    { memory: 1_048_576 },
    { cpus: 1000 },
    ...[{}, { memory: 0 }, { memory: -1 }, { memory: 1.5 }, { memory: "512" }, { memory: 2 ** 53 }],
    ...[{ cpus: 0 }, { cpus: 0.01 }, { cpus: "1" }, { memory: 512, storageMb: 1 }],
  ]) {
    const { status } = await resize("box", body);
    assert.ok(status === 400 || status === 422, `${JSON.stringify(body)}: ${status}`);
  }
  assert.equal((await resize("none", { memory: 512 })).status, 404);
  const spec = { runtime: { memory: 512, cpus: 1000 } };
  const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "wide" }, spec } });
  assert.match(made.body.message, /spec.runtime.cpus.*must not be above/);
});

test("policies of the sandbox that no longer allow it here refuse it", async () => {
  const flavor = { type: "flavor", flavors: [{ name: "x86", type: "cpu" }] };
  const body = { metadata: { name: "place" }, spec: flavor };
  const made = await platform.call("POST", "/policies", { body });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const spec = { policies: ["place"], runtime: { memory: 512 } };
  const box = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "bound" }, spec } });
  assert.equal(box.status, 200, JSON.stringify(box.body));
  const uid = (await stored("bound")).uid;
  const gpu = { ...flavor, flavors: [{ name: "t4", type: "gpu" }] };
  const changed = await platform.call("PUT", "/policies/place", { body: { metadata: { name: "place" }, spec: gpu } });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  assert.equal((await resize("bound", { memory: 1024 })).status, 403);
  assert.equal(limitsOf(uid)?.memoryMb, 512);
});

test("a sandbox in standby is resized in its sleep, and one that is switched off is refused", async () => {
  const uid = await create("sleeper");
  assert.equal((await platform.call("POST", "/sandboxes/sleeper/pause")).body.state, "STANDBY");
  assert.equal((await resize("sleeper", { memory: 1024 })).status, 200);
  assert.deepEqual([limitsOf(uid)?.memoryMb, machine.workloads.get(uid)?.observed.state], [1024, "frozen"]);
  const { body } = await platform.call("GET", "/sandboxes/sleeper");
  assert.equal(body.state, "STANDBY");
  await platform.call("PUT", "/sandboxes/sleeper", { body: { ...body, spec: { ...body.spec, enabled: false } } });
  const refused = await resize("sleeper", { memory: 512 });
  assert.equal(refused.status, 409);
  assert.match(refused.body.message, /cannot be resized/);
});

test("a PUT with another memory starts the sandbox anew, also after a resize", async () => {
  const uid = await create("put");
  await resize("put", { memory: 1024 });
  const born = bornAt(uid);
  const { body } = await platform.call("GET", "/sandboxes/put");
  const named = { ...body, metadata: { ...body.metadata, displayName: "Named" } };
  assert.equal((await platform.call("PUT", "/sandboxes/put", { body: named })).status, 200);
  const settled = (now: Resource | null) => now?.status === "DEPLOYED" && now.generation === now.observedGeneration;
  const wait = () =>
    platform.app.store.resources.waitFor("main", uid, settled, { signal: AbortSignal.timeout(60_000) });
  await wait();
  assert.equal(bornAt(uid), born, "what was read is written back without an effect");
  const runtime = { ...body.spec.runtime, memory: 2048 };
  await platform.call("PUT", "/sandboxes/put", { body: { ...body, spec: { ...body.spec, runtime } } });
  await wait();
  assert.notEqual(bornAt(uid), born);
  assert.deepEqual(limitsOf(uid), { memoryMb: 2048, cpus: 1 });
});

test("a wish that a killed server left is finished, whether the machine had followed or not", async () => {
  const uid = await create("left");
  for (const [from, to, hadFollowed] of [
    [512, 1024, false],
    [1024, 2048, true],
  ] as const) {
    const found = machine.workloads.get(uid);
    if (hadFollowed && found) found.observed.limits = { memoryMb: to, cpus: 1 };
    const wish = { id: `left-${to}`, from: { memory: from }, to: { memory: to } };
    const { resources } = platform.app.store;
    await resources.update("main", uid, ({ state }) => ({ state: { ...state, resize: wish } }));
    await resources.waitFor("main", uid, (now) => now?.state.resize === undefined, {
      signal: AbortSignal.timeout(60_000),
    });
    const { memory } = (await stored("left")).spec.runtime as { memory: number };
    assert.deepEqual([memory, limitsOf(uid)?.memoryMb], [to, to]);
  }
  const wish = { id: "stale", from: { memory: 512 }, to: { memory: 4096 } };
  await platform.app.store.resources.update("main", uid, ({ state }) => ({ state: { ...state, resize: wish } }));
  await platform.app.store.resources.waitFor("main", uid, (now) => now?.state.resize === undefined, {
    signal: AbortSignal.timeout(60_000),
  });
  assert.equal(limitsOf(uid)?.memoryMb, 2048, "a wish about another size than the record's has no effect");
});

test("of two clients at once, each is done or told that another one was first", async () => {
  const uid = await create("both");
  const answers = await Promise.all([1024, 2048, 3072].map((memory) => resize("both", { memory })));
  for (const { status } of answers) assert.ok(status === 200 || status === 409, String(status));
  const { memory } = (await stored("both")).spec.runtime as { memory: number };
  assert.equal(limitsOf(uid)?.memoryMb, memory);
});
