/** What callers learn about workspaces and workloads that are none of their business. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { createPriceBook, rateOf } from "../../src/metering/price-book.ts";
import type { UsageEvent } from "../../src/store/usage/port.ts";
import { makeAccount, makeServiceAccount, makeUser, makeWorkload } from "../identities.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";

const HOUR_MS = 3_600_000;
const START_MS = Date.parse("2026-03-02T00:00:00Z");
const WINDOW = "startTime=2026-03-02T00:00:00Z&endTime=2026-03-03T00:00:00Z";
/** A window that begins and ends within an hour, so that single events are read beside the sums. */
const CUT_WINDOW = "startTime=2026-03-02T00:30:00Z&endTime=2026-03-02T01:30:00Z";
const SECRET_WORDS = /vault|payroll|volume/;

let platform: TestPlatform;
let accountId: string;
/** Caller → what they may see of `main`, of `vault`. */
let nobody: string;
let ofMain: string;
let robot: string;
let workload: string;

before(async () => {
  platform = await startTestPlatform();
  const { store } = platform.app;
  accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  const made = await platform.call("POST", "/workspaces", { body: { name: "vault" } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const event = (workspace: string, resourceName: string, dimension: string, hour: number): UsageEvent => ({
    series: {
      accountId,
      workspace,
      resourceType: dimension.split("_")[0] ?? "",
      resourceName,
      resourceUuid: `uuid-${resourceName}`,
      dimension,
    },
    startMs: START_MS + hour * HOUR_MS,
    endMs: START_MS + (hour + 1) * HOUR_MS,
    quantity: 1024 * HOUR_MS,
    key: "test",
  });
  const events = [
    event("main", "box", "sandbox_compute_runtime_gbs", 0),
    event("main", "box", "sandbox_compute_runtime_gbs", 1),
    event("vault", "payroll", "volume_storage_gbs", 0),
    event("vault", "payroll", "volume_storage_gbs", 1),
    event("vault", "payroll-box", "sandbox_compute_runtime_gbs", 1),
    // The usage of a workspace that no longer exists belongs to the account alone.
    event("bygone-vault", "payroll-job", "job_compute_runtime_gbs", 1),
  ];
  await store.usage.record({ events }, rateOf(createPriceBook()));
  nobody = (await makeUser(store, accountId, "member")).key;
  ofMain = (await makeUser(store, accountId, "member", { main: "admin" })).key;
  robot = (await makeServiceAccount(store, "main", "admin")).key;
  workload = (await makeWorkload(store, "main", ["admin"])).key;
});
after(() => platform.stop());

const ask = (path: string, key?: string) =>
  platform.call("GET", `/accounts/${accountId}/metrics${path}`, key === undefined ? {} : { key });

const QUERIES = [
  "",
  "&groupBy=resource_uuid",
  "&groupBy=resource_name",
  "&groupBy=resource_type",
  "&groupBy=billing_dimension",
  "&groupBy=resource_uuid,billing_dimension,resource_name",
  "&resourceName=payroll",
  "&resourceUuid=uuid-payroll",
  "&resourceUuid=uuid-payroll&groupBy=resource_name",
  "&resourceType=volume",
  "&resourceType=volume&groupBy=resource_name",
  "&billingDimension=volume_storage_gbs&groupBy=resource_uuid",
  "&resolution=monthly&groupBy=resource_uuid",
];

describe("the account's metrics", () => {
  for (const window of [WINDOW, CUT_WINDOW])
    test(`show a member of no workspace nothing, however they are asked (${window.slice(10, 30)})`, async () => {
      for (const query of QUERIES) {
        const { status, body } = await ask(`?${window}${query}`, nobody);
        assert.equal(status, 200, query);
        assert.equal(body.summary.totalCost, 0, query);
        assert.equal(body.data.length, query.includes("groupBy") ? 0 : 1, query);
        for (const entry of body.data)
          assert.ok(
            entry.timeseries.every(({ cost }: { cost: number }) => cost === 0),
            query,
          );
      }
    });

  test("show those of one workspace that workspace only", async () => {
    for (const window of [WINDOW, CUT_WINDOW])
      for (const query of QUERIES) {
        const whole = await ask(`?${window}${query}&workspace=main`);
        for (const key of [ofMain, robot, workload]) {
          const { status, body } = await ask(`?${window}${query}`, key);
          assert.equal(status, 200, query);
          assert.deepEqual(body, whole.body, query);
          assert.doesNotMatch(JSON.stringify(body.data), SECRET_WORDS);
        }
      }
    assert.equal((await ask(`?${WINDOW}&groupBy=resource_uuid`)).body.data.length, 4);
  });

  test("tell nothing through an admin's cursor", async () => {
    const first = await ask(`?${WINDOW}&groupBy=resource_uuid&limit=1`);
    assert.equal(first.body.meta.hasMore, true);
    const cursor = encodeURIComponent(first.body.meta.nextCursor);
    const { body } = await ask(`?${WINDOW}&groupBy=resource_uuid&limit=1&cursor=${cursor}`, nobody);
    assert.deepEqual(body.data ?? [], []);
  });

  test("name only the types that the caller's workspaces used", async () => {
    for (const window of [WINDOW, CUT_WINDOW]) {
      const types = async (key?: string) => (await ask(`/enums/resource-types?${window}`, key)).body.values;
      assert.deepEqual(await types(nobody), []);
      assert.deepEqual(await types(ofMain), ["sandbox"]);
      assert.deepEqual(await types(), ["job", "sandbox", "volume"]);
    }
  });

  test("follow a membership as it ends", async () => {
    const { store } = platform.app;
    const guest = await makeUser(store, accountId, "member", { vault: "member" });
    const names = async () =>
      (await ask(`?${WINDOW}&groupBy=resource_name`, guest.key)).body.data
        .map(({ resourceName }: { resourceName: string }) => resourceName)
        .sort();
    assert.deepEqual(await names(), ["payroll", "payroll-box"]);
    const removed = await platform.call("DELETE", `/users/${guest.sub}`, { workspace: "vault" });
    assert.ok(removed.status < 300, JSON.stringify(removed.body));
    assert.deepEqual(await names(), []);
  });

  test("keep the rule about looking workspace by workspace", async () => {
    for (const query of [`?${WINDOW}&workspace=main`, `?${WINDOW}&groupBy=workspace`])
      for (const key of [nobody, ofMain, robot]) assert.equal((await ask(query, key)).status, 403);
  });
});

describe("what a workload wrote before it crashed", () => {
  const SPOKEN = /hunter2/;
  const command = ["sh", "-c", "printf 'password is %s2' hunter >&2; exit 7"];

  before(async () => {
    const spec = { image: "service/base-image:latest", command };
    const made = await platform.call("POST", "/applications", {
      workspace: "main",
      body: { metadata: { name: "shaky" }, spec },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    await untilSaid(() => platform.call("GET", "/applications/shaky", { workspace: "main" }));
  });

  const visit = async (key: string | null, header = "x-service-authorization") => {
    const answer = await fetch(`${platform.url}/main/applications/shaky/`, {
      headers: key === null ? {} : { [header]: `Bearer ${key}` },
    });
    return { status: answer.status, text: await answer.text() };
  };

  test("is told to nobody who is unknown, and to no stranger", async () => {
    const { store } = platform.app;
    const { id } = await makeAccount(store, "strangers");
    const stranger = await makeUser(store, id, "admin");
    for (const key of [null, nobody, stranger.key, "no-such-key"]) {
      const { status, text } = await visit(key);
      assert.equal(status, 503, text);
      assert.doesNotMatch(text, SPOKEN);
      assert.match(text, /WORKLOAD_START_FAILED/);
    }
  });

  test("is told to those who may read its logs", async () => {
    const { store } = platform.app;
    const reader = await makeUser(store, accountId, "member", { main: "member" }, ["logs:list"]);
    for (const key of [reader.key, ofMain])
      for (const header of ["x-service-authorization", "authorization"])
        assert.match((await visit(key, header)).text, SPOKEN);
  });

  test("is in no event for a key that may not read logs", async () => {
    const { store } = platform.app;
    const weak = await makeUser(store, accountId, "member", { main: "admin" }, [
      "applications:get",
      "applications:list",
    ]);
    const seen = async (key: string) =>
      JSON.stringify((await platform.call("GET", "/applications/shaky", { workspace: "main", key })).body);
    assert.match(await seen(ofMain), SPOKEN);
    assert.match(await seen(weak.key), /shaky/);
    assert.doesNotMatch(await seen(weak.key), SPOKEN);
    assert.doesNotMatch((await visit(weak.key)).text, SPOKEN);
  });

  async function untilSaid(look: () => Promise<Answer>): Promise<void> {
    const giveUp = Date.now() + 60_000;
    while (!SPOKEN.test(JSON.stringify((await look()).body.events ?? []))) {
      assert.ok(Date.now() < giveUp, "the crash is told within a minute");
      await pause(20);
    }
  }
});
