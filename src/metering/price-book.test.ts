import assert from "node:assert/strict";
import { test } from "node:test";
import { hourOf } from "../lib/time/utc-calendar.ts";
import { costOf } from "../store/usage/rollup.ts";
import { DIMENSION_NAMES, STANDARD_DIMENSIONS } from "./dimensions.ts";
import { costToDecimal, costToUsd, createPriceBook, parsePriceFile, rateOf } from "./price-book.ts";

const hour = (text: string): number => hourOf(Date.parse(text));
const HOUR = hour("2026-01-01T00:00:00Z");

test("a GB-hour, an hour and a request cost what the book says, to the last digit", () => {
  const book = createPriceBook();
  const cost = (dimension: "sandbox_compute_runtime_gbs" | "custom_domain_active_time_hours", quantity: bigint) =>
    costToDecimal(costOf(quantity, book.rate(dimension, HOUR)));
  assert.equal(cost("sandbox_compute_runtime_gbs", 4096n * 3_600_000n), "0.1656"); // 4 GB for an hour
  assert.equal(cost("sandbox_compute_runtime_gbs", 1n), "0"); // 1 MB for a millisecond
  assert.equal(cost("custom_domain_active_time_hours", 3_600_000n), "0.0014");
  assert.equal(costToUsd(costOf(3n, book.rate("agent_async_requests_count", HOUR))), 0.0000006);
});

test("all twelve dimensions have a price; what goes beyond them is free until it is priced", () => {
  const book = createPriceBook();
  for (const dimension of DIMENSION_NAMES) {
    assert.equal(book.rate(dimension, HOUR).numerator > 0n, Object.hasOwn(STANDARD_DIMENSIONS, dimension), dimension);
  }
  assert.equal(costOf(10n ** 12n, rateOf(book)("no_such_dimension", HOUR)), 0n);
});

test("costs are rounded half up, once", () => {
  const rate = { numerator: 1n, denominator: 100n };
  assert.deepEqual(
    [49n, 50n, 149n, 150n].map((quantity) => costOf(quantity, rate)),
    [0n, 1n, 1n, 2n],
  );
});

test("a price holds from its hour on", () => {
  const book = createPriceBook(
    parsePriceFile(`
      [[price]]
      dimension = "volume_storage_gbs"
      usd = "0.000000012345"
      from = 2026-07-01T00:00:00Z

      [[price]]
      dimension = "volume_storage_gbs"
      usd = "0.5"
      from = "2025-01-01T00:00:00Z"
    `),
  );
  const pico = (text: string) => book.rate("volume_storage_gbs", hour(text)).numerator;
  assert.equal(pico("2024-12-31T23:00:00Z"), 0n);
  assert.equal(pico("2025-01-01T00:00:00Z"), 500_000_000_000n);
  assert.equal(pico("2026-06-30T23:00:00Z"), 500_000_000_000n);
  assert.equal(pico("2026-07-01T00:00:00Z"), 12_345n);
  assert.ok(book.rate("sandbox_compute_runtime_gbs", HOUR).numerator > 0n, "others keep the shipped price");
});

test("a book can be written out and read back", () => {
  const book = createPriceBook({
    price: [{ dimension: "drive_storage_gbs", usd: "0.1", from: "2026-01-01T00:00:00Z" }],
  });
  const file = { price: book.list().map(({ from, ...price }) => (from ? { ...price, from } : price)) };
  assert.deepEqual(createPriceBook(parsePriceFile(JSON.stringify(file))).list(), book.list());
});

test("what another book does not name costs what it did", () => {
  const price = [{ dimension: "drive_storage_gbs", usd: "0.1", from: "2026-01-01T00:00:00Z" }];
  const inForce = createPriceBook({ price });
  const other = createPriceBook({ price: [{ dimension: "volume_storage_gbs", usd: "2" }] }, inForce);
  const usdOf = (name: string) => other.list().flatMap(({ dimension, usd }) => (dimension === name ? [usd] : []));
  assert.deepEqual(usdOf("drive_storage_gbs"), ["0.1"]);
  assert.deepEqual(usdOf("volume_storage_gbs"), ["2"]);
  assert.equal(other.list().length, inForce.list().length);
});

test("a wrong book says what is wrong with it", () => {
  const price = { dimension: "volume_storage_gbs", usd: "0.1" };
  const rows: [unknown, RegExp][] = [
    [{ price: [{ ...price, usd: 0.1 }] }, /a number would lose digits/],
    [{ price: [{ ...price, usd: "0.0000000000001" }] }, /at most 12 decimals/],
    [{ price: [{ ...price, usd: "-1" }] }, /not a price/],
    [{ price: [{ ...price, usd: "1e3" }] }, /not a price/],
    [{ price: [{ ...price, usd: "1000.01" }] }, /more than 1000 USD/],
    [{ price: [{ ...price, dimension: "volumes" }] }, /no dimension "volumes"/],
    [{ price: [{ ...price, from: "2026-01-01" }] }, /full UTC hour/],
    [{ price: [{ ...price, from: "2026-01-01T00:30:00Z" }] }, /full UTC hour/],
    [{ price: [price, price] }, /already has a price/],
    [{ price: [], currency: "EUR" }, /USD/],
    [{ prices: [] }, /prices/],
  ];
  for (const [file, reason] of rows) assert.throws(() => createPriceBook(file), reason);
  assert.throws(() => parsePriceFile("= nothing"), /price book cannot be used/);
});
