/** `berth billing` in its own process, against the real platform. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createPriceBook, rateOf } from "../../src/metering/price-book.ts";
import { runBerth } from "../berth-process.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";

const HOUR_MS = 3_600_000;
const GB_HOUR = 1024 * HOUR_MS;
const WINDOW = "--start 2026-03-02T00:00:00Z --end 2026-03-20T00:00:00Z";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
  const { store } = platform.app;
  const accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  const hours: [name: string, type: string, dimension: string, time: string, gbHours: number][] = [
    ["box", "sandbox", "sandbox_compute_runtime_gbs", "2026-03-02T01:00:00Z", 4],
    ["box", "sandbox", "sandbox_compute_runtime_gbs", "2026-03-12T01:00:00Z", 1],
    ["disk", "volume", "volume_storage_gbs", "2026-03-02T01:00:00Z", 10],
  ];
  const events = hours.map(([resourceName, resourceType, dimension, time, gbHours]) => ({
    series: {
      accountId,
      workspace: "main",
      resourceType,
      resourceName,
      resourceUuid: `uuid-${resourceName}`,
      dimension,
    },
    startMs: Date.parse(time),
    endMs: Date.parse(time) + HOUR_MS,
    quantity: gbHours * GB_HOUR,
    key: "test",
  }));
  const series = { accountId, workspace: "main", resourceUuid: "uuid" };
  const box = { ...series, resourceType: "sandbox", resourceName: "box", dimension: "sandbox_compute_runtime_gbs" };
  const echo = { ...series, resourceType: "model", resourceName: "echo", dimension: "model_input_tokens_count" };
  const startMs = Date.parse("2026-04-02T01:00:00Z");
  const single = [
    { series: box, startMs, endMs: startMs + 1, quantity: 1, key: "one-mb-for-a-millisecond" },
    { series: { ...echo, subject: "api_key/k1" }, startMs: startMs + 5, endMs: startMs + 5, quantity: 7, key: "ask" },
  ];
  await store.usage.record({ events: [...events, ...single] }, rateOf(createPriceBook()));
});
after(() => platform.stop());

const berth = async (args: string): Promise<{ stdout: string; stderr: string }> => {
  const env = { BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY, BERTH_DATA: platform.dataDir };
  const { code, stdout, stderr } = await runBerth(`billing ${args}`.split(" "), { env });
  assert.equal(code, 0, stderr);
  return { stdout, stderr };
};

test("export writes a row for every resource, dimension and bucket that was used", async () => {
  assert.equal(
    (await berth(`export ${WINDOW}`)).stdout,
    `timestamp,workspace,resourceType,resourceName,resourceUuid,billingDimension,usage,cost
2026-03-02T00:00:00Z,main,sandbox,box,uuid-box,sandbox_compute_runtime_gbs,14400,0.1656
2026-03-12T00:00:00Z,main,sandbox,box,uuid-box,sandbox_compute_runtime_gbs,3600,0.0414
2026-03-02T00:00:00Z,main,volume,disk,uuid-disk,volume_storage_gbs,36000,0.00162
`,
  );
  const hourly = await berth(`export ${WINDOW} --resolution hourly --format jsonl`);
  const lines = hourly.stdout.trim().split("\n");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)).map(({ timestamp, resourceName, cost }) => [timestamp, resourceName, cost]),
    [
      ["2026-03-02T01:00:00Z", "box", 0.1656],
      ["2026-03-02T01:00:00Z", "disk", 0.00162],
      ["2026-03-12T01:00:00Z", "box", 0.0414],
    ],
    "longer than one hourly question may be",
  );
  const raw = await berth(`export ${WINDOW} --events --format jsonl`);
  assert.equal(raw.stdout.trim().split("\n").length, 3);
  assert.equal((await berth("export --start 2020-01-01T00:00:00Z --end 2020-02-01T00:00:00Z")).stdout, "");
});

test("a table of events has its columns in every row, and all digits of a number", async () => {
  assert.equal(
    (await berth("export --start 2026-04-02T00:00:00Z --end 2026-04-03T00:00:00Z --events")).stdout,
    `workspace,resourceType,resourceName,resourceUuid,billingDimension,usedBy,startTime,endTime,usage,key
main,sandbox,box,uuid,sandbox_compute_runtime_gbs,,2026-04-02T01:00:00.000Z,2026-04-02T01:00:00.001Z,0.0000009765625,one-mb-for-a-millisecond
main,model,echo,uuid,model_input_tokens_count,api_key/k1,2026-04-02T01:00:00.005Z,2026-04-02T01:00:00.005Z,7,ask
`,
  );
});

test("top shows what costs most", async () => {
  const { stdout, stderr } = await berth(`top ${WINDOW}`);
  assert.match(stderr, /^0\.208620 USD in all/);
  const [titles, first, second] = stdout.split("\n");
  assert.match(titles ?? "", /^NAME +USD +SHARE +TREND$/);
  assert.match(first ?? "", /^main\/sandbox\/box +0\.207000 +99\.2% +█▁{9}▃▁{7}$/);
  assert.match(second ?? "", /^main\/volume\/disk +0\.001620 +0\.8%/);
  const byDimension = JSON.parse((await berth(`top ${WINDOW} --by dimension --limit 1 -o json`)).stdout);
  assert.deepEqual(
    byDimension.map(({ name }: { name: string }) => name),
    ["sandbox_compute_runtime_gbs"],
  );
});

test("rebuild changes nothing that was right", async () => {
  const before = (await berth(`export ${WINDOW}`)).stdout;
  const { stderr } = await berth("rebuild --start 2026-02-20T00:00:00Z --end 2026-03-20T00:00:00Z");
  assert.equal(stderr, "2026-02 rebuilt\n2026-03 rebuilt\n");
  assert.equal((await berth(`export ${WINDOW}`)).stdout, before);
});

test("what cannot be meant is said before anything is asked", async () => {
  const env = { BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY, BERTH_DATA: platform.dataDir };
  for (const args of [
    "top --since soon",
    "export --start yesterday",
    "export --start 2026-03-01T00:00:00",
    "top --end 2020-01-01T00:00:00Z --start 2021-01-01T00:00:00Z",
  ]) {
    const { code, stderr } = await runBerth(`billing ${args}`.split(" "), { env });
    assert.equal(code, 2, stderr);
  }
});
