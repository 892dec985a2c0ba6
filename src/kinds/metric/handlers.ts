import { DAY_MS, HOUR_MS, SECOND_MS, toIso } from "../../lib/time/clock.ts";
import { seriesOf } from "../../metering/resource-metrics/series.ts";
import { readHours } from "../../metering/resource-metrics/stored-hours.ts";
import { namedResource } from "../named-resource.ts";
import { type Implementation, implement } from "../port.ts";
import { rangeOf } from "../time-range.ts";
import { metricQuery, POINTS_DEFAULT, STEP_MIN } from "./operations.ts";

export const metricHandlers: readonly Implementation[] = [
  implement(metricQuery, async (call, deps) => {
    const { resource } = await namedResource(call, deps);
    const asked = rangeOf(call.query, { nowMs: deps.clock.now(), defaultMs: HOUR_MS, maxMs: DAY_MS });
    const step = call.query.step ?? stepFor(asked.toMs - asked.fromMs);
    const stepMs = step * SECOND_MS;
    const range = { stepMs, fromMs: asked.fromMs - (asked.fromMs % stepMs), toMs: asked.toMs };
    const points = seriesOf(await readHours(deps.store.records, resource.uid), range);
    return { start: toIso(range.fromMs), end: toIso(range.toMs), step, points };
  }),
];

const stepFor = (lengthMs: number): number =>
  STEP_MIN * Math.max(1, Math.ceil(lengthMs / (POINTS_DEFAULT * STEP_MIN * SECOND_MS)));
