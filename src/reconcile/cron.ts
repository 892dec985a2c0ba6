/**
 * Fires cron triggers. Every server reads the due triggers each second. The next slot of a trigger is stored in the
 * transaction that queues its work, so one server fires each slot. Slots missed while no server ran are recorded as
 * skipped, once, and not fired: a restarted platform must not start everything it missed.
 */

import { type Trigger, triggerNamed, triggerPath } from "../contract/triggers.ts";
import type { Log } from "../kinds/port.ts";
import type { Running } from "../lib/lifecycle.ts";
import { type Clock, SECOND_MS, toIso } from "../lib/time/clock.ts";
import { cronTimes, dueTimes, LATE_MAX_MS, type Missed, missedTimes } from "../lib/time/cron.ts";
import type { Transaction } from "../store/database/database.ts";
import type { CronTriggerRow } from "../store/database/schema.ts";
import type { DeliveryDraft } from "../store/deliveries/delivery.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import { ASYNC_WITHIN_MS, type AsyncPayload } from "./async-requests.ts";

const LOOK_MS = SECOND_MS;
/** Triggers fired per round; the next round handles the rest. */
const PAGE = 100;

export interface CronRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
  requestId: string;
}

export interface CronDeps {
  store: Store;
  clock: Clock;
  log: Log;
  /** In the names of headers. */
  brandWords: readonly string[];
  /** A POST to a workload, in the form that it is kept in. */
  compose(request: CronRequest): unknown;
}

export function startCron(deps: CronDeps): Running {
  const { log } = deps;
  let looking: Promise<void> | null = null;
  const timer = setInterval(() => {
    looking ??= fireDue(deps)
      .catch((error: unknown) => log.warn({ err: error }, "cron triggers could not be looked at"))
      .finally(() => {
        looking = null;
      });
  }, LOOK_MS).unref();
  return {
    async stop() {
      clearInterval(timer);
      await looking;
    },
  };
}

export async function fireDue(deps: CronDeps): Promise<void> {
  const { store, clock, log } = deps;
  for (const row of await store.cronTriggers.listDueAcrossWorkspaces(clock.now(), PAGE)) {
    try {
      await fire(row, deps);
    } catch (error) {
      log.warn(
        { err: error, uid: row.uid, trigger: row.trigger_id },
        "a cron trigger could not be fired, trying again",
      );
    }
  }
}

async function fire(row: CronTriggerRow, deps: CronDeps): Promise<void> {
  const { store, clock } = deps;
  const now = clock.now();
  const next = cronTimes(row.schedule, row.timezone);
  const slot = dueTimes(next, row.next_at - 1, now)?.fire ?? null;
  const missed = missedTimes(next, row.next_at, slot ?? now);
  await store.write(async (tx) => {
    // Locks the workload first, like every writer of a workload and its triggers.
    const resource = await store.resources.modify(tx, row.workspace, row.uid, () => null);
    const trigger = resource && triggerNamed(resource, row.trigger_id);
    const live = resource !== null && trigger !== undefined && resource.deletedAt === null && !resource.retired;
    if (!(await store.cronTriggers.advance(tx, row, live ? next(slot ?? now) : null)) || !live) return;
    const refusal = slot === null ? null : await queue(tx, resource, trigger as Trigger, slot, deps);
    const skipped = [missed && missedText(missed), refusal].filter((text) => text !== null);
    for (const text of skipped)
      await store.resources.modify(tx, row.workspace, row.uid, () => ({
        event: { type: "skipped", message: `Trigger '${row.trigger_id}' was skipped ${text}` },
      }));
  });
}

/** Queues the work of a slot; returns the reason when it does not. */
async function queue(
  tx: Transaction,
  resource: Resource,
  trigger: Trigger,
  slot: number,
  deps: CronDeps,
): Promise<string | null> {
  for (const draft of draftsOf(resource, trigger, slot, deps)) {
    if (!(await deps.store.deliveries.addIn(tx, draft)))
      return `at ${toIso(slot)}: too much waits in this workspace already.`;
  }
  return null;
}

/** A job gets one execution, any other workload a request for each of the trigger's tasks. */
function draftsOf(resource: Resource, trigger: Trigger, slot: number, deps: CronDeps): DeliveryDraft[] {
  const { workspace, kind, uid, name } = resource;
  const draft = { workspace, kind, uid, triggerId: trigger.id, cause: "cron", withinMs: ASYNC_WITHIN_MS } as const;
  if (kind === "job") return [{ ...draft, phase: "execution", payload: {} }];
  const { tasks } = trigger.configuration ?? {};
  const bodies = tasks?.length ? tasks : [{}];
  const headers = { "content-type": "application/json", ...triggerHeaders(trigger.id, slot, deps) };
  return bodies.map((body, index) => {
    const request = deps.compose({
      path: `/${triggerPath(trigger)}`,
      headers,
      body: JSON.stringify(body),
      requestId: `${uid}/${encodeURIComponent(trigger.id)}/${slot}/${index}`,
    });
    return { ...draft, phase: "request", payload: { name, request } satisfies AsyncPayload };
  });
}

const triggerHeaders = (id: string, slot: number, { brandWords }: CronDeps): Record<string, string> =>
  Object.fromEntries(
    brandWords.flatMap((word) => [
      [`x-${word}-trigger-id`, encodeURIComponent(id)],
      [`x-${word}-trigger-time`, toIso(slot)],
    ]),
  );

function missedText({ first, last, count, more }: Missed): string {
  const when =
    count === 1 && !more
      ? `at ${toIso(first)}`
      : `${more ? "more than " : ""}${count} times from ${toIso(first)}${more ? " on" : ` to ${toIso(last)}`}`;
  return `${when}: no server ran then, nor within ${LATE_MAX_MS / SECOND_MS} seconds after it.`;
}
