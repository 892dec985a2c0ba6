/** Everything that starts workloads without a client that waits, as one thing to start and stop. */
import { type Running, Stack } from "../lib/lifecycle.ts";
import type { DeliveryLine } from "../store/deliveries/delivery.ts";
import { type AsyncRequestsDeps, asyncRequestLine } from "./async-requests.ts";
import { type CallbacksDeps, callbackLine } from "./callbacks.ts";
import { type CronDeps, startCron } from "./cron.ts";
import { startDeliveries } from "./deliveries.ts";

export interface TriggersDeps<Request> extends AsyncRequestsDeps<Request>, CallbacksDeps, CronDeps {
  /** Where this server is; see DeliveriesOptions. */
  place: string;
  /** How executions of jobs are started. */
  executions: DeliveryLine;
}

export async function startTriggers<Request extends { requestId: string }>(
  deps: TriggersDeps<Request>,
): Promise<Running> {
  const { store, log, place } = deps;
  const stack = new Stack();
  const lines = [asyncRequestLine(deps), deps.executions, callbackLine(deps)];
  stack.add(await startDeliveries({ store, log, place, lines }));
  stack.add(startCron(deps));
  return stack;
}
