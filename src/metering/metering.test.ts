import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type TestDatabase, type TestPlace, testDatabases } from "../../test/databases.ts";
import { eventually } from "../../test/sandboxd-harness.ts";
import { addWorkspace, draftOf, openTestStore } from "../../test/store.ts";
import { uuidv7 } from "../lib/ids.ts";
import { DAY_MS } from "../lib/time/clock.ts";
import type { Store } from "../store/store.ts";
import { accountMetrics } from "./account-metrics.ts";
import { startEgressMeter } from "./egress-meter.ts";
import type { Meter } from "./meter.ts";
import { type Metering, startMetering } from "./metering.ts";
import { parseMetricsQuery } from "./metrics-query.ts";
import { startTokenMeter } from "./model-tokens.ts";
import { createPriceBook } from "./price-book.ts";

const databases = await testDatabases();
after(() => databases.stop());
const book = createPriceBook();
/** Each database has its own day: uids contain the time of creation, which never goes back. */
const START_MS = { sqlite: Date.parse("2026-05-04T10:00:00Z"), postgres: Date.parse("2026-05-05T10:00:00Z") };

for (const database of databases.all)
  describe(`metering on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(database: TestDatabase): void {
  let nowMs = START_MS[database.name];
  let store: Store;
  let metering: Metering;
  let place: TestPlace;
  const errors: unknown[] = [];
  /** uids of the running workloads, with their start times. */
  const machine = new Map<string, number>();
  const driveMb = new Map<string, number>();
  /** Counters of the workloads' own networks, and bytes forwarded by the proxy since the last call. */
  const sent = new Map<string, number>();
  let forwarded = new Map<string, number>();
  const traffic = {
    sentBytes: async (uid: string) => sent.get(uid) ?? null,
    takeForwarded: () => {
      const taken = forwarded;
      forwarded = new Map();
      return taken;
    },
  };
  const clock = { now: () => nowMs };
  const start = (node = "here", runs = machine) =>
    startMetering({
      store,
      book,
      clock,
      monotonicMs: () => nowMs,
      node,
      holder: uuidv7(nowMs),
      runningSince: async (uid) => runs.get(uid) ?? null,
      storedMb: async (stored) => {
        if ("drive" in stored) return driveMb.get(stored.drive) ?? null;
        return "snapshot" in stored || "volumeCopy" in stored ? 256 : stored.image === "base" ? 512 : null;
      },
      traffic,
      onError: (error) => errors.push(error),
    });

  before(async () => {
    place = await database.migrated();
    store = await openTestStore(place, { clock, onError: (error) => errors.push(error) });
    await addWorkspace(store, "main", "acc");
    metering = await start();
  });
  after(async () => {
    await metering.stop();
    await store.close();
    place.remove();
    assert.deepEqual(errors, []);
  });

  const create = async (kind: string, name: string, spec: Record<string, unknown>, parent = "") => {
    const uid = uuidv7(nowMs);
    await store.resources.create(draftOf(kind, name, { parent, uid, spec }));
    return uid;
  };
  const setPhase = (uid: string, phase: "running" | "frozen" | null) => {
    if (phase && !machine.has(uid)) machine.set(uid, nowMs);
    if (!phase) machine.delete(uid);
    return store.resources.update("main", uid, () => ({
      state: { instances: phase ? [{ uid, revision: null, phase, endpoint: null }] : [] },
    }));
  };
  /** Current usage of one resource, by dimension. */
  const usageOf = async (name: string): Promise<Record<string, number>> => {
    const query = parseMetricsQuery({
      startTime: "2026-05-01T00:00:00Z",
      endTime: "2026-06-01T00:00:00Z",
      groupBy: "billing_dimension",
      resourceName: name,
    });
    const { data } = await accountMetrics(
      { ledger: store.usage, book, cursors: store.cursors, clock },
      { accountId: "acc", workspaces: "all" },
      query,
    );
    return Object.fromEntries(data.map(({ billingDimension = "", summary }) => [billingDimension, summary.usage ?? 0]));
  };
  /** Waits until the meter of `node` has exactly these rates open for a resource and has covered them up to now. */
  const untilOpen = async (node: string, name: string, rates: Record<string, number>): Promise<void> => {
    for (;;) {
      const { spans = [], coveredUntilMs } = (await store.usage.meterState(node)) ?? {};
      const open = spans.filter(({ series }) => series.resourceName === name);
      const same =
        open.length === Object.keys(rates).length &&
        open.every(({ series, ratePerMs }) => rates[series.dimension] === ratePerMs);
      if (same && coveredUntilMs === nowMs) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };

  test("a sandbox that was resized is billed by its new memory from that moment, however late that is noticed", async () => {
    const compute = "sandbox_compute_runtime_gbs";
    const uid = await create("sandbox", "resized", { runtime: { memory: 1024 } });
    await setPhase(uid, "running");
    await untilOpen("here", "resized", { [compute]: 1024 });
    nowMs += 10_000;
    const resized = { atMs: nowMs, memory: 3072 };
    nowMs += 4000;
    await store.resources.update("main", uid, ({ state }) => ({
      spec: { runtime: { memory: 3072 } },
      state: { ...state, resized },
    }));
    await untilOpen("here", "resized", { [compute]: 3072 });
    nowMs += 6000;
    await store.resources.update("main", uid, ({ state }) => ({ state: { ...state, lastUsedAt: 1 } }));
    nowMs += 1000;
    await setPhase(uid, "frozen");
    await untilOpen("here", "resized", {});
    nowMs += 50_000;
    await setPhase(uid, "running");
    await untilOpen("here", "resized", { [compute]: 3072 });
    nowMs += 2000;
    await store.resources.delete("main", uid);
    await untilOpen("here", "resized", {});
    assert.equal((await usageOf("resized"))[compute], 10 + 3 * 11 + 3 * 2);
  });

  test("a sandbox: compute while it runs, its image and its snapshots as long as they exist", async () => {
    const uid = await create("sandbox", "box", { runtime: { memory: 1024, image: "base" } });
    await untilOpen("platform", "box", { sandbox_image_storage_gbs: 512 });
    nowMs += 10_000;
    await setPhase(uid, "running");
    await untilOpen("here", "box", { sandbox_compute_runtime_gbs: 1024 });
    nowMs += 20_000;
    await setPhase(uid, "frozen");
    await untilOpen("here", "box", {});
    const snapshot = await create("snapshot", "snap_1", {}, uid);
    await store.resources.update("main", snapshot, () => ({ state: { phase: "ready" } }));
    await untilOpen("platform", "box", { sandbox_image_storage_gbs: 512, sandbox_snapshot_storage_gbs: 256 });
    nowMs += 30_000;
    await setPhase(uid, "running");
    await untilOpen("here", "box", { sandbox_compute_runtime_gbs: 1024 });
    nowMs += 5000;
    await store.resources.delete("main", uid);
    await untilOpen("here", "box", {});
    await untilOpen("platform", "box", {});
    assert.deepEqual(await usageOf("box"), {
      sandbox_compute_runtime_gbs: 25,
      sandbox_snapshot_storage_gbs: 8.75,
      sandbox_image_storage_gbs: 32.5,
    });
  });

  test("what goes on over a restart is metered through it, what is gone is not", async () => {
    const compute = { sandbox_compute_runtime_gbs: 1024 };
    const volume = { volume_storage_gbs: 1024 };
    const kept = await create("volume", "kept", { size: 1024 });
    const boxes = { stays: "", dies: "", restarts: "" };
    for (const name of ["stays", "dies", "restarts"] as const) {
      boxes[name] = await create("sandbox", name, { runtime: { memory: 1024 } });
      await setPhase(boxes[name], "running");
      await untilOpen("here", name, compute);
    }
    await untilOpen("platform", "kept", volume);
    nowMs += 60_000;
    await metering.stop();
    nowMs += 60_000;
    machine.delete(boxes.dies);
    machine.set(boxes.restarts, nowMs); // the machine lost this workload meanwhile and it was started again
    metering = await start();
    for (const name of ["stays", "restarts"]) await untilOpen("here", name, compute);
    await untilOpen("platform", "kept", volume);
    nowMs += 60_000;
    await store.resources.delete("main", kept);
    await untilOpen("platform", "kept", {});
    for (const name of ["stays", "restarts"] as const) await setPhase(boxes[name], null);
    for (const name of ["stays", "restarts"]) await untilOpen("here", name, {});
    assert.deepEqual(await usageOf("kept"), { volume_storage_gbs: 180 });
    assert.deepEqual(await usageOf("stays"), { sandbox_compute_runtime_gbs: 180 });
    assert.deepEqual(await usageOf("restarts"), { sandbox_compute_runtime_gbs: 120 });
    assert.deepEqual(await usageOf("dies"), { sandbox_compute_runtime_gbs: 60 }, "its record still says running");
  });

  test("of two servers only one meters what merely exists, and the other one takes over", async () => {
    if (database.name === "sqlite") return; // a database file has one server
    const second = await start("there", new Map());
    const uid = await create("volume", "once", { size: 1024 });
    await untilOpen("platform", "once", { volume_storage_gbs: 1024 });
    const box = await create("sandbox", "one-machine", { runtime: { memory: 1024 } });
    await setPhase(box, "running");
    await untilOpen("here", "one-machine", { sandbox_compute_runtime_gbs: 1024 });
    nowMs += 50_000;
    await second.stop();
    nowMs += 50_000;
    await setPhase(box, null);
    await untilOpen("here", "one-machine", {});
    assert.deepEqual(await usageOf("one-machine"), { sandbox_compute_runtime_gbs: 100 });
    await store.resources.delete("main", uid);
    await untilOpen("platform", "once", {});
    assert.deepEqual(await usageOf("once"), { volume_storage_gbs: 100 });
  });

  test("a drive takes up what its files do, whatever its record says", async () => {
    const uid = await create("drive", "shared", { size: 5000 });
    await untilOpen("platform", "shared", {});
    for (const size of [100, 300]) {
      driveMb.set(uid, size);
      await store.resources.update("main", uid, () => ({ spec: { note: size } }));
      await untilOpen("platform", "shared", { drive_storage_gbs: size });
      nowMs += 1_024_000;
    }
    await store.resources.delete("main", uid);
    await untilOpen("platform", "shared", {});
    assert.deepEqual(await usageOf("shared"), { drive_storage_gbs: 400 });
  });

  test("what ends before it was looked at for the first time is metered", async () => {
    const uid = await create("sandbox", "brief", { runtime: { memory: 1024 } });
    await setPhase(uid, "running");
    nowMs += 20_000;
    await store.resources.update("main", uid, () => ({ deleted: true, status: "DELETING" }));
    await untilOpen("here", "brief", { sandbox_compute_runtime_gbs: 1024 });
    await setPhase(uid, null);
    await untilOpen("here", "brief", {});
    assert.deepEqual(await usageOf("brief"), { sandbox_compute_runtime_gbs: 20 });
  });

  test("what goes out is counted once: by both ways, through a restart, and when a counter starts anew", async () => {
    const MB = 2 ** 20;
    const uid = await create("sandbox", "talker", { runtime: { memory: 1 } });
    const gone = async () => ((await usageOf("talker")).sandbox_egress_gb ?? 0) * 1024;
    await setPhase(uid, "running");
    await untilOpen("here", "talker", { sandbox_compute_runtime_gbs: 1 });
    sent.set(uid, 3 * MB + 100);
    forwarded.set(uid, MB);
    await metering.egress.look();
    assert.equal(await gone(), 4);
    await metering.egress.look();
    assert.equal(await gone(), 4);
    await metering.stop();
    sent.set(uid, 5 * MB);
    metering = await start();
    await untilOpen("here", "talker", { sandbox_compute_runtime_gbs: 1 });
    await metering.egress.look();
    assert.equal(Math.round((await gone()) * 1024), 6 * 1024 - 1, "the part of a KB that was not counted yet is lost");
    sent.set(uid, MB);
    await metering.egress.look();
    assert.equal(Math.round((await gone()) * 1024), 7 * 1024 - 1);
    await setPhase(uid, null);
  });

  test("what was written down but not counted is counted after a restart, once", async () => {
    const uid = uuidv7(nowMs);
    const box = { kind: "function", workspace: "main", name: "cut-off", uid };
    const options = { store, clock, node: "cut", traffic, onError: (error: unknown) => errors.push(error) };
    const broken = { count: () => Promise.reject(new Error("no database")) };
    const first = await startEgressMeter({ ...options, meter: broken });
    first.watch(uid, box);
    sent.set(uid, 2048);
    await assert.rejects(first.look(), /no database/);
    await first.stop();
    assert.match(String(errors.pop()), /no database/);
    for (let start = 0; start < 2; start += 1) {
      const next = await startEgressMeter({ ...options, meter: metering.meter });
      next.watch(uid, box);
      await next.stop();
    }
    assert.deepEqual(await usageOf("cut-off"), { mcp_server_egress_gb: 2 / 2 ** 20 });
  });

  describe("tokens of model requests", () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-token-journal-"));
    after(() => rmSync(folder, { recursive: true }));
    const startTokens = (meter: Pick<Meter, "countAll"> = metering.meter) =>
      startTokenMeter(meter, folder, (error) => errors.push(error));
    const requestOf = (name: string, requestId: string) => ({
      requestId,
      accountId: "acc",
      workspace: "main",
      model: name,
      modelUid: `uid-of-${name}`,
      subject: { type: "api_key", id: "k-1" },
      costNanoUsd: 1_500_000,
      priced: true,
      estimated: false,
      fromCache: false,
      fromSimilar: false,
      inputTokens: 100,
      outputTokens: 20,
      cachedInputTokens: 0,
      startedAtMs: nowMs - 1000.5,
    });
    const amounts = (requests: number, outputTokens = requests * 20) => ({
      model_requests_count: requests,
      model_input_tokens_count: requests * 100,
      model_output_tokens_count: outputTokens,
      model_provider_cost_usd: requests * 0.0015,
    });

    test("of a time in which the database was away are counted once it is back", async () => {
      let tries = 0;
      const countAll: Meter["countAll"] = async (...args) => {
        tries += 1;
        if (tries < 10) throw new Error("away");
        await metering.meter.countAll(...args);
      };
      const failures: unknown[] = [];
      const tokens = await startTokenMeter({ countAll }, folder, (error) => failures.push(error), 1);
      for (let n = 0; n < 600; n += 1) tokens.record(requestOf("patient", `away-${n}`));
      await eventually(async () => (await usageOf("patient"))?.model_requests_count === 600);
      await tokens.stop();
      assert.deepEqual(await usageOf("patient"), amounts(600));
      assert.equal(failures.length, 9);
      assert.deepEqual(readdirSync(folder), [], "nothing is left to be recorded");
    });

    test("are counted once, however often they are told", async () => {
      const tokens = await startTokens();
      for (const id of ["r-1", "r-1", "r-2"]) tokens.record(requestOf("gpt", id));
      await tokens.stop();
      assert.deepEqual(await usageOf("gpt"), amounts(2));
      assert.deepEqual(readdirSync(folder), [], "nothing is left to be recorded");
    });

    test("are recorded by the next server when this one is killed before it could", async () => {
      // A meter that never answers stands for a process that is killed in the middle.
      const killed = await startTokens({ countAll: () => new Promise(() => undefined) });
      for (let n = 0; n < 5000; n += 1) killed.record(requestOf("cut", `c-${n}`));
      assert.ok(readdirSync(folder).length > 1, "files are of a bounded length");
      await (await startTokens()).stop();
      assert.deepEqual(await usageOf("cut"), amounts(5000));
      assert.deepEqual(readdirSync(folder), []);
    });

    test("that are too old to be recorded keep no other out, and are told once", async () => {
      const killed = await startTokens({ countAll: () => new Promise(() => undefined) });
      killed.record({ ...requestOf("late", "l-1"), startedAtMs: nowMs - 32 * DAY_MS });
      killed.record(requestOf("late", "l-2"));
      await (await startTokens()).stop();
      assert.deepEqual(await usageOf("late"), amounts(1));
      assert.match(String(errors.pop()), /l-1 to late .* is not counted \(100 tokens in, 20 out\)/);
      assert.deepEqual(readdirSync(folder), [], "and so does not come up at the next start");
    });

    test("that were recorded just before the kill are not recorded again", async () => {
      const killed = await startTokens({
        async countAll(resource, counts) {
          await metering.meter.countAll(resource, counts);
          await new Promise(() => undefined); // killed before it got the answer
        },
      });
      // Full batches are written without a timer, which a killed process would not have.
      for (let n = 0; n < 500; n += 1) killed.record(requestOf("known", `k-${n}`));
      await metering.meter.flush();
      await (await startTokens()).stop();
      assert.deepEqual(await usageOf("known"), amounts(500));
    });

    test("of an answer in flight are recorded as far as they were known, of a finished one in full", async () => {
      const killed = await startTokens({ countAll: () => new Promise(() => undefined) });
      killed.note({ ...requestOf("noted", "n-1"), outputTokens: 7 });
      killed.note({ ...requestOf("noted", "n-2"), outputTokens: 7 });
      killed.record(requestOf("noted", "n-2"));
      const [file = assert.fail()] = readdirSync(folder);
      appendFileSync(join(folder, file), '{"requestId":"torn');
      await (await startTokens()).stop();
      assert.deepEqual(await usageOf("noted"), amounts(2, 27));
    });
  });
}
