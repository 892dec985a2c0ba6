/**
 * Minutes in the store: one expiring record for each resource, hour and node, so that a resource costs at most 24
 * records and what is old disappears by itself.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/time/clock.ts";
import type { Records } from "../../store/records.ts";
import { addMinute, emptyMinute, type Minute } from "./minute.ts";

/** How long minutes are kept. */
export const METRICS_KEPT_MS = DAY_MS;

/** The minutes of one hour on one node, by their number in the hour. */
export interface StoredHour {
  hour: number;
  node: string;
  minutes: Record<number, Minute>;
}

const prefixOf = (uid: string): string => `metrics/${uid}/`;

/** Adds what was observed to the minute that `atMs` lies in. */
export function addToHour(records: Records, node: string, uid: string, atMs: number, more: Minute): Promise<void> {
  const hour = Math.floor(atMs / HOUR_MS);
  const minute = Math.floor((atMs % HOUR_MS) / MINUTE_MS);
  const expiresAtMs = (hour + 1) * HOUR_MS + METRICS_KEPT_MS;
  return records.update(`${prefixOf(uid)}${hour}/${node}`, expiresAtMs, (value) => {
    const stored: StoredHour = value === null ? { hour, node, minutes: {} } : (JSON.parse(value) as StoredHour);
    const sum = stored.minutes[minute] ?? emptyMinute();
    addMinute(sum, more);
    stored.minutes[minute] = sum;
    return { value: JSON.stringify(stored), result: undefined };
  });
}

export const readHours = async (records: Pick<Records, "list">, uid: string): Promise<StoredHour[]> =>
  (await records.list(prefixOf(uid))).map((value) => JSON.parse(value) as StoredHour);
