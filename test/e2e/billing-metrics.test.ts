/** The billing endpoints over HTTP: what they answer, what they refuse, and who may ask. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createPriceBook, rateOf } from "../../src/metering/price-book.ts";
import type { UsageEvent } from "../../src/store/usage/port.ts";
import { makeAccount, makeServiceAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const HOUR_MS = 3_600_000;
const DAY = "startTime=2026-03-02T00:00:00Z&endTime=2026-03-03T00:00:00Z";
const GB_HOUR = 1024 * HOUR_MS;

let platform: TestPlatform;
let accountId: string;

before(async () => {
  platform = await startTestPlatform();
  const { store } = platform.app;
  accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  const event = (
    resourceName: string,
    dimension: string,
    hour: number,
    quantity: number,
    workspace = "main",
  ): UsageEvent => ({
    series: {
      accountId,
      workspace,
      resourceType: dimension.split("_")[0] ?? "",
      resourceName,
      resourceUuid: `uuid-${resourceName}`,
      dimension,
    },
    startMs: Date.parse("2026-03-02T00:00:00Z") + hour * HOUR_MS,
    endMs: Date.parse("2026-03-02T00:00:00Z") + (hour + 1) * HOUR_MS,
    quantity,
    key: "test",
  });
  const events = [
    event("box", "sandbox_compute_runtime_gbs", 1, 4 * GB_HOUR),
    event("box", "sandbox_compute_runtime_gbs", 3, 2 * GB_HOUR),
    event("box", "sandbox_image_storage_gbs", 3, GB_HOUR),
    event("disk", "volume_storage_gbs", 3, 10 * GB_HOUR, "lab"),
  ];
  await store.usage.record({ events }, rateOf(createPriceBook()));
});
after(() => platform.stop());

const metrics = (query: string, key?: string | null) =>
  platform.call("GET", `/accounts/${accountId}/metrics${query}`, key === undefined ? {} : { key });

describe("account metrics", () => {
  test("without groupBy there is one entry with every bucket of the window", async () => {
    const { status, body } = await metrics(`?${DAY}`);
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body), ["startTime", "endTime", "resolution", "summary", "data", "meta"]);
    assert.equal(body.startTime, "2026-03-02T00:00:00Z");
    assert.equal(body.resolution, "hourly");
    assert.deepEqual(body.meta, { hasMore: false, nextCursor: "" });
    assert.equal(body.data.length, 1);
    const { summary, timeseries, ...fields } = body.data[0];
    assert.deepEqual(fields, {});
    // 6 GB-hours of compute, 1 of image and 10 of volume storage, at the shipped prices.
    assert.equal(summary.cost, 0.2484 + 0.000072 + 0.00162);
    assert.deepEqual(body.summary, { totalCost: summary.cost });
    assert.equal(timeseries.length, 24);
    assert.deepEqual(timeseries[0], { timestamp: "2026-03-02T00:00:00Z", cost: 0 });
    assert.deepEqual(timeseries[1], { timestamp: "2026-03-02T01:00:00Z", cost: 0.1656 });
  });

  test("usage is told where each entry is of one dimension", async () => {
    const { body } = await metrics(`?${DAY}&groupBy=billing_dimension`);
    assert.deepEqual(
      body.data.map(({ timeseries, ...entry }) => entry),
      [
        {
          resourceType: "sandbox",
          billingDimension: "sandbox_compute_runtime_gbs",
          summary: { cost: 0.2484, usage: 21_600 },
        },
        { resourceType: "volume", billingDimension: "volume_storage_gbs", summary: { cost: 0.00162, usage: 36_000 } },
        {
          resourceType: "sandbox",
          billingDimension: "sandbox_image_storage_gbs",
          summary: { cost: 0.000072, usage: 3600 },
        },
      ],
    );
    assert.equal(body.summary.totalUsage, 61_200);
    assert.deepEqual(body.data[0].timeseries[1], { timestamp: "2026-03-02T01:00:00Z", cost: 0.1656, usage: 14_400 });
  });

  test("pages of composite groups, with the summary of all groups on each", async () => {
    const query = `?${DAY}&groupBy=billing_dimension,resource_uuid&limit=1`;
    const pages = [];
    for (let cursor = ""; ; ) {
      const { status, body } = await metrics(`${query}&cursor=${cursor}`);
      assert.equal(status, 200);
      pages.push(body);
      cursor = body.meta.nextCursor;
      if (!body.meta.hasMore) break;
    }
    assert.deepEqual(
      pages.map(({ data }) => [
        data[0].workspace,
        data[0].resourceName,
        data[0].resourceUuid,
        data[0].billingDimension,
      ]),
      [
        ["main", "box", "uuid-box", "sandbox_compute_runtime_gbs"],
        ["lab", "disk", "uuid-disk", "volume_storage_gbs"],
        ["main", "box", "uuid-box", "sandbox_image_storage_gbs"],
      ],
    );
    assert.equal(new Set(pages.map(({ summary }) => summary.totalCost)).size, 1);
    const cursor = pages[0]?.meta.nextCursor ?? "";
    for (const other of [
      `?${DAY}&groupBy=resource_uuid&cursor=${cursor}`,
      `${query}&resourceType=sandbox&cursor=${cursor}`,
    ]) {
      const { status, body } = await metrics(other);
      assert.deepEqual([status, body.error], [400, "invalid_cursor"]);
    }
    assert.equal((await metrics(`${query}&cursor=nonsense`)).status, 400);
  });

  test("filters", async () => {
    const cost = async (filter: string) => (await metrics(`?${DAY}&${filter}`)).body.summary.totalCost;
    assert.equal(await cost("resourceType=volume"), 0.00162);
    assert.equal(await cost("resourceName=box"), 0.248472);
    assert.equal(await cost("resourceUuid=uuid-disk"), 0.00162);
    assert.equal(await cost("billingDimension=sandbox_image_storage_gbs"), 0.000072);
    assert.equal(await cost("workspace=lab"), 0.00162);
    assert.equal(await cost("workspace=nowhere"), 0);
  });

  test("every wrong parameter is a 400 that names it", async () => {
    const window = "startTime=2026-01-01T00:00:00Z&endTime=2026-03-01T00:00:00Z";
    const rows: [string, string][] = [
      ["startTime", "endTime=2026-03-01T00:00:00Z"],
      ["endTime", "startTime=2026-03-01T00:00:00Z"],
      ["startTime", "startTime=yesterday&endTime=2026-03-01T00:00:00Z"],
      ["endTime", "startTime=2026-03-01T00:00:00Z&endTime=2026-03-01T00:00:00Z"],
      ["label", `${window}&label=team`],
      ["unit", `${window}&unit=gbs`],
      ["resolution", `${window}&resolution=hourly`],
      ["resolution", `${window}&resolution=yearly`],
      ["groupBy", `${window}&groupBy=team`],
      ["groupBy", `${window}&groupBy=resource_type,resource_type`],
      ["groupBy", `${window}&groupBy=workspace,resource_type,resource_name,billing_dimension`],
      ["groupBy", `${window}&groupBy=resource_type&groupBy=resource_name`],
      ["limit", `${window}&limit=0`],
      ["limit", `${window}&limit=many`],
      ["billingDimension", `${window}&billingDimension=cpu`],
      ["resourcetype", `${window}&resourcetype=sandbox`],
    ];
    for (const [name, query] of rows) {
      const { status, body } = await metrics(`?${query}`);
      assert.equal(status, 400, query);
      assert.match(body.message, new RegExp(`^${name}\\b`), query);
    }
  });

  test("only account admins look at the account workspace by workspace", async () => {
    const { store } = platform.app;
    const member = await makeUser(store, accountId, "member", { main: "admin" });
    for (const query of [`?${DAY}&workspace=main`, `?${DAY}&groupBy=resource_type,workspace`]) {
      const { status, body } = await metrics(query, member.key);
      assert.equal(status, 403);
      assert.match(body.message, /access denied/i);
      assert.equal((await metrics(query)).status, 200);
    }
    const allowed = await metrics(`?${DAY}&groupBy=resource_name`, member.key);
    assert.deepEqual([allowed.status, allowed.body.data[0].workspace], [200, "main"]);
    const robot = await makeServiceAccount(store, "main");
    assert.equal((await metrics(`?${DAY}`, robot.key)).status, 200);
    assert.equal((await metrics(`?${DAY}&groupBy=workspace`, robot.key)).status, 403);
  });

  test("another account's metrics are nobody else's business, and a bearer is needed", async () => {
    const { store } = platform.app;
    const foreign = await makeAccount(store, "strangers");
    const stranger = await makeUser(store, foreign.id, "admin", {});
    const refused = await metrics(`?${DAY}`, stranger.key);
    assert.equal(refused.status, 403);
    assert.match(refused.body.message, /access denied/i);
    assert.equal((await metrics(`?${DAY}`, null)).status, 401);
    const basic = `Basic ${Buffer.from(`user:${platform.apiKey}`).toString("base64")}`;
    const withBasic = await platform.call("GET", `/accounts/${accountId}/metrics?${DAY}`, {
      key: null,
      headers: { authorization: basic },
    });
    assert.equal(withBasic.status, 401);
    const other = await platform.call("GET", `/accounts/${accountId}/metrics?${DAY}`, {
      key: null,
      headers: { "x-service-authorization": `Bearer ${platform.apiKey}` },
    });
    assert.equal(other.status, 200);
  });
});

describe("what goes with the metrics", () => {
  const enums = (path: string) => platform.call("GET", `/accounts/${accountId}/metrics/enums/${path}`);

  test("the values of groupBy and the types that were used", async () => {
    assert.deepEqual((await enums("group-by")).body, {
      values: ["workspace", "resource_type", "resource_name", "resource_uuid", "billing_dimension"],
    });
    assert.deepEqual((await enums(`resource-types?${DAY}`)).body, { values: ["sandbox", "volume"] });
    const early = "startTime=2026-03-02T00:00:00Z&endTime=2026-03-02T02:30:00Z";
    assert.deepEqual((await enums(`resource-types?${early}`)).body, { values: ["sandbox"] });
    for (const query of ["", "?startTime=2026-03-02T00:00:00Z", `?${DAY}&groupBy=workspace`])
      assert.equal((await enums(`resource-types${query}`)).status, 400);
  });

  test("prices can be read, tried out and applied to the past", async () => {
    const { body } = await platform.call("GET", `/accounts/${accountId}/metrics/prices`);
    const volume = body.price.find(({ dimension }) => dimension === "volume_storage_gbs");
    assert.deepEqual(volume, { dimension: "volume_storage_gbs", unit: "gbs", usd: "0.000000045" });
    const window = { startTime: "2026-03-02T00:00:00Z", endTime: "2026-03-03T00:00:00Z" };
    const tried = await platform.call("POST", `/accounts/${accountId}/metrics/reprice`, {
      body: { ...window, price: [{ dimension: "volume_storage_gbs", usd: "0.001" }] },
    });
    assert.equal(tried.status, 200);
    assert.deepEqual(tried.body.data.at(-1), {
      billingDimension: "volume_storage_gbs",
      usage: 36_000,
      cost: 0.00162,
      repricedCost: 36,
    });
    assert.equal(tried.body.summary.repricedCost, 36.248472);
    const before = (await metrics(`?${DAY}&groupBy=resource_uuid`)).body;
    const rebuilt = await platform.call("POST", `/accounts/${accountId}/metrics/rebuild`, { body: window });
    assert.equal(rebuilt.status, 200);
    assert.deepEqual((await metrics(`?${DAY}&groupBy=resource_uuid`)).body, before);
    const wrong = await platform.call("POST", `/accounts/${accountId}/metrics/reprice`, {
      body: { ...window, price: [{ dimension: "gold", usd: "1" }] },
    });
    assert.equal(wrong.status, 400);
  });

  test("the events behind a cost", async () => {
    const path = `/accounts/${accountId}/metrics/events?${DAY}`;
    const first = await platform.call("GET", `${path}&limit=3`);
    assert.equal(first.body.data.length, 3);
    assert.deepEqual(first.body.data[0], {
      workspace: "main",
      resourceType: "sandbox",
      resourceName: "box",
      resourceUuid: "uuid-box",
      billingDimension: "sandbox_compute_runtime_gbs",
      startTime: "2026-03-02T01:00:00.000Z",
      endTime: "2026-03-02T02:00:00.000Z",
      usage: 14_400,
      key: "test",
    });
    const second = await platform.call("GET", `${path}&cursor=${first.body.meta.nextCursor}`);
    assert.deepEqual([second.body.data.length, second.body.meta], [1, { hasMore: false, nextCursor: "" }]);
    const narrowed = await platform.call(
      "GET",
      `${path}&limit=1&resourceName=box&billingDimension=sandbox_compute_runtime_gbs`,
    );
    assert.deepEqual(narrowed.body.data, [first.body.data[0]]);
    const none = await platform.call("GET", `${path}&resourceName=nobody`);
    assert.deepEqual(none.body.data, []);
    // A cursor goes on only with the filters that it was made with.
    assert.equal(
      (await platform.call("GET", `${path}&resourceName=box&cursor=${first.body.meta.nextCursor}`)).status,
      400,
    );
    assert.equal((await platform.call("GET", `${path}&resourcename=box`)).status, 400);
  });

  test("counters for everything that was used", async () => {
    const text = await (await fetch(`${platform.url}/metrics`)).text();
    assert.match(text, /berth_usage_total\{dimension="sandbox_compute_runtime_gbs",unit="gbs"\} 21600\n/);
    assert.match(text, /berth_usage_cost_usd_total\{dimension="volume_storage_gbs"\} 0\.00162\n/);
    const asked = await fetch(`${platform.url}/metrics`, { headers: { accept: "application/openmetrics-text" } });
    assert.match(asked.headers.get("content-type") ?? "", /^application\/openmetrics-text; version=1\.0\.0/);
    const open = await asked.text();
    assert.match(open, /^# TYPE berth_usage counter\nberth_usage_total\{/m);
    const counters = [...open.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, family]) => family);
    const families = [...open.matchAll(/^# TYPE (\S+) /gm)].map(([, family]) => family);
    assert.equal(new Set(families).size, families.length);
    // Every counter of the platform is called so that its family can be told from it.
    for (const family of counters) assert.doesNotMatch(open, new RegExp(`^${family}(\\{| )`, "m"));
  });
});

describe("metering of what the records say", () => {
  test("a volume is metered from the moment it exists until it is gone", async () => {
    const created = await platform.call("POST", "/volumes", {
      body: { metadata: { name: "metered" }, spec: { size: 2048 } },
    });
    assert.equal(created.status, 200);
    const used = await until(async () => {
      const window = `startTime=${new Date(Date.now() - HOUR_MS).toISOString()}&endTime=${new Date(Date.now() + HOUR_MS).toISOString()}`;
      const { body } = await metrics(`?${window}&groupBy=billing_dimension&resourceName=metered`);
      return body.data[0]?.summary.usage > 0 ? body.data[0] : null;
    });
    assert.equal(used.billingDimension, "volume_storage_gbs");
    assert.equal((await platform.call("DELETE", "/volumes/metered")).status, 200);
    const { store } = platform.app;
    await until(async () => {
      const { spans = [] } = (await store.usage.meterState("platform")) ?? {};
      return spans.some(({ series }) => series.resourceName === "metered") ? null : true;
    });
  });
});

describe("metering of what runs", () => {
  test("a sandbox is metered while it runs", async () => {
    const name = "metered-box";
    const created = await platform.call("POST", "/sandboxes", {
      body: { metadata: { name }, spec: { runtime: { memory: 512 } } },
    });
    assert.equal(created.status, 200, created.body?.message);
    const found = await until(async () => {
      const window = `startTime=${new Date(Date.now() - HOUR_MS).toISOString()}&endTime=${new Date(Date.now() + HOUR_MS).toISOString()}`;
      const { body } = await metrics(`?${window}&groupBy=billing_dimension&resourceName=${name}`);
      return body.data.find(
        ({ billingDimension, summary }: { billingDimension: string; summary: { usage: number } }) =>
          billingDimension === "sandbox_compute_runtime_gbs" && summary.usage > 0,
      );
    });
    assert.ok(found.summary.cost > 0);
    assert.equal((await platform.call("DELETE", `/sandboxes/${name}`)).status, 200);
  });
});

async function until<T>(look: () => Promise<T | null | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
