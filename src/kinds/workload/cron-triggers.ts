import { isOn, triggersOf } from "../../contract/triggers.ts";
import { cronTimes } from "../../lib/time/cron.ts";
import type { Transaction } from "../../store/database/database.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";
import { TIMEZONE_DEFAULT } from "./cron.ts";

/**
 * Stores the next slot of each cron trigger, in the transaction that writes the workload. A disabled trigger has none.
 */
export async function keepCronTriggers(
  tx: Transaction,
  resource: Resource,
  { store, clock }: Platform,
): Promise<Resource> {
  const { uid, workspace, spec } = resource;
  const triggers =
    spec.enabled === false ? [] : triggersOf(resource).filter((each) => each.type === "cron" && isOn(each));
  const rows = triggers.flatMap(({ id, configuration: { schedule = "", timezone = TIMEZONE_DEFAULT } = {} }) => {
    const next_at = cronTimes(schedule, timezone)(clock.now());
    return next_at === null ? [] : [{ uid, trigger_id: id, workspace, schedule, timezone, next_at }];
  });
  await store.cronTriggers.replace(tx, uid, rows);
  return resource;
}
