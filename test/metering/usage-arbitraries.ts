/** Random usage around the dates where calendars go wrong: leap days, year and month ends, summer time changes. */

import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/time/clock.ts";
import { hourMs, hourOf } from "../../src/lib/time/utc-calendar.ts";
import { DIMENSION_NAMES, DIMENSIONS } from "../../src/metering/dimensions.ts";
import { createPriceBook, rateOf } from "../../src/metering/price-book.ts";
import type { UsageEvent, UsageSeries, UsageSpan } from "../../src/store/usage/port.ts";
import fc from "../properties.ts";
import type { ModelQuery } from "./metrics-model.ts";

const BASES = [
  "2024-02-28T22:00:00Z",
  "2023-12-31T20:00:00Z",
  "2025-03-30T00:00:00Z",
  "2025-10-26T00:00:00Z",
  "2026-04-30T23:00:00Z",
].map((text) => Date.parse(text));

export const ACCOUNTS = ["acc-1", "acc-2"] as const;

/** Prices that change in the middle of things, one of them with all twelve decimals. */
export const book = createPriceBook({
  price: [
    { dimension: "sandbox_compute_runtime_gbs", usd: "0.0000115" },
    { dimension: "sandbox_compute_runtime_gbs", usd: "0.000013370001", from: "2024-02-29T07:00:00Z" },
    { dimension: "sandbox_compute_runtime_gbs", usd: "0.000009", from: "2025-10-26T01:00:00Z" },
    { dimension: "volume_storage_gbs", usd: "0.000000045123" },
    { dimension: "custom_domain_active_time_hours", usd: "0.0014", from: "2024-01-01T00:00:00Z" },
    { dimension: "model_input_tokens_count", usd: "0.0000025" },
  ],
});

export const anySeries: fc.Arbitrary<UsageSeries> = fc
  .record({
    accountId: fc.constantFrom(...ACCOUNTS, ACCOUNTS[0]),
    workspace: fc.constantFrom("default", "lab", "Zürich"),
    resourceName: fc.constantFrom("a", "b", "B", "web-1", "ü"),
    resourceUuid: fc.constantFrom("", "u-1", "u-2"),
    dimension: fc.constantFrom(...DIMENSION_NAMES.slice(0, 5), ...DIMENSION_NAMES),
    subject: fc.constantFrom("api_key/1", "user/ü", ""),
  })
  .map(({ subject, ...series }) => ({
    ...series,
    resourceType: DIMENSIONS[series.dimension].resourceType,
    ...(subject === "" ? {} : { subject }),
  }));

const anyInstant = fc
  .tuple(
    fc.constantFrom(...BASES),
    fc.oneof(
      fc.integer({ min: -3 * HOUR_MS, max: 12 * HOUR_MS }),
      fc.integer({ min: -40 * DAY_MS, max: 40 * DAY_MS }),
      fc.integer({ min: -48, max: 48 }).map((hours) => hours * HOUR_MS),
    ),
  )
  .map(([base, offset]) => base + offset);

const anyLengthMs = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 1, max: 10_000 }),
  fc.integer({ min: MINUTE_MS, max: 5 * HOUR_MS }),
  fc.constant(HOUR_MS),
);

const anyQuantity = fc.oneof(fc.nat(1000), fc.integer({ min: 0, max: 4096 * HOUR_MS }), fc.nat(1_000_000_000_000));

export const anyEvent: fc.Arbitrary<UsageEvent> = fc
  .record({
    series: anySeries,
    startMs: anyInstant,
    lengthMs: anyLengthMs,
    quantity: anyQuantity,
    key: fc.constantFrom("k1", "k2", "k3"),
  })
  .map(({ lengthMs, ...event }) => ({ ...event, endMs: event.startMs + lengthMs }));

/** A span inside one hour, as a meter keeps them, and how much of it has been vouched for. */
export const anyRunning: fc.Arbitrary<{ span: UsageSpan; coveredMs: number }> = fc
  .record({
    series: anySeries,
    startMs: anyInstant,
    ratePerMs: fc.integer({ min: 1, max: 65_536 }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ series, startMs, ratePerMs, share }) => {
    const leftMs = hourMs(hourOf(startMs) + 1) - startMs;
    const price = rateOf(book)(series.dimension, hourOf(startMs));
    return {
      span: { series, startMs, ratePerMs, key: "span-0", price },
      coveredMs: startMs + Math.floor(leftMs * share),
    };
  });

const anyWindow = fc
  .tuple(
    anyInstant,
    fc.oneof(
      fc.integer({ min: 1, max: 2 * HOUR_MS }),
      fc.integer({ min: 1, max: 7 * DAY_MS }),
      fc.integer({ min: 1, max: 95 }).map((days) => days * DAY_MS),
      fc.integer({ min: 1, max: 400 * DAY_MS }),
    ),
    fc.constantFrom(1, 1, HOUR_MS, DAY_MS),
  )
  .map(([middle, lengthMs, alignMs]) => {
    const startMs = Math.floor((middle - lengthMs / 2) / alignMs) * alignMs;
    return { startMs, endMs: startMs + Math.max(alignMs, Math.floor(lengthMs / alignMs) * alignMs) };
  });

const anyFilter = fc.record(
  {
    workspace: fc.constantFrom("default", "Zürich", "nowhere"),
    resourceType: fc.constantFrom("sandbox", "agent", "volume"),
    resourceName: fc.constantFrom("a", "B", "ü"),
    resourceUuid: fc.constantFrom("u-1", "u-2"),
    dimension: fc.constantFrom(...DIMENSION_NAMES),
  },
  { requiredKeys: [] },
);

export interface AnyQuery extends Omit<ModelQuery, "resolution"> {
  resolution: ModelQuery["resolution"] | undefined;
  limit: number;
  /** Moves the window so that one of its ends cuts through an event. */
  cut: { event: number; share: number; end: "startMs" | "endMs" } | null;
}

export const anyQuery: fc.Arbitrary<AnyQuery> = fc
  .record({
    accountId: fc.constantFrom(...ACCOUNTS, ACCOUNTS[0]),
    window: anyWindow,
    resolution: fc.constantFrom(undefined, undefined, "hourly", "daily", "weekly", "monthly"),
    groupBy: fc.shuffledSubarray(
      ["workspace", "resource_type", "resource_name", "resource_uuid", "billing_dimension"],
      { maxLength: 3 },
    ),
    filter: fc.oneof(fc.constant({}), fc.constant({}), anyFilter),
    limit: fc.constantFrom(1, 2, 3, 100, 1000),
    cut: fc.option(
      fc.record({
        event: fc.nat(100),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        end: fc.constantFrom("startMs", "endMs"),
      }),
    ),
  })
  .map(({ window, ...query }) => ({ ...query, ...window }));

export function cutWindow(query: AnyQuery, events: readonly { startMs: number; endMs: number }[]): AnyQuery {
  const event = query.cut ? events[query.cut.event % Math.max(1, events.length)] : undefined;
  if (!query.cut || !event) return query;
  const atMs = event.startMs + Math.round((event.endMs - event.startMs) * query.cut.share);
  const shiftMs = atMs - query[query.cut.end];
  return { ...query, startMs: query.startMs + shiftMs, endMs: query.endMs + shiftMs };
}
