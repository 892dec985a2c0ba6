/** The usage events behind the costs, page by page. */
import type { CursorCodec } from "../contract/cursor.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Clock } from "../lib/time/clock.ts";
import { toIso } from "../lib/time/clock.ts";
import type { EventsPage, EventsWindow, PlacedEvent } from "../store/usage/events.ts";
import type { UsageEvent, UsageEventPlace } from "../store/usage/port.ts";
import { isDimension, usageOf } from "./dimensions.ts";
import { parseEventsQuery } from "./metrics-query.ts";

export interface EventsDependencies {
  ledger: {
    events(accountId: string, window: EventsWindow, page: EventsPage): Promise<PlacedEvent[]>;
  };
  cursors: CursorCodec;
  clock: Clock;
}

export async function usageEventsPage(
  { ledger, cursors, clock }: EventsDependencies,
  accountId: string,
  raw: Readonly<Record<string, unknown>>,
) {
  const { window, filter, limit, cursor } = parseEventsQuery(raw);
  const bound = [
    "accountUsageEvents",
    accountId,
    window.startMs,
    window.endMs,
    ...(Object.keys(filter).length > 0 ? [filter] : []),
  ];
  const after = cursor === null ? null : placeOf(cursors.decode(cursor, bound, clock.now()));
  const found = await ledger.events(accountId, window, { filter, limit: limit + 1, after });
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const hasMore = found.length > limit && last !== undefined;
  return {
    data: page.map(({ event }) => toWire(event)),
    meta: { hasMore, nextCursor: hasMore ? cursors.encode(last.place, bound, clock.now()) : "" },
  };
}

function toWire({ series, startMs, endMs, quantity, key }: UsageEvent) {
  const { dimension } = series;
  return {
    workspace: series.workspace,
    resourceType: series.resourceType,
    resourceName: series.resourceName,
    resourceUuid: series.resourceUuid,
    billingDimension: dimension,
    ...(series.subject === undefined ? {} : { usedBy: series.subject }),
    startTime: toIso(startMs),
    endTime: toIso(endMs),
    usage: isDimension(dimension) ? usageOf(dimension, BigInt(quantity)) : 0,
    key,
  };
}

export function placeOf([startMs, series, key]: unknown[]): UsageEventPlace {
  if (typeof startMs !== "number" || typeof series !== "number" || typeof key !== "string") {
    throw new PlatformError("invalid_cursor", "cursor does not belong to this endpoint. Start again without one.");
  }
  return [startMs, series, key];
}
