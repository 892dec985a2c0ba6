/**
 * Sends the result of a request or an execution to its callback URL: signed, and retried until the receiver accepts it.
 */
import { callbackSecretKey, triggerNamed } from "../contract/triggers.ts";
import { backoffMs } from "../lib/backoff.ts";
import { AddressRefused } from "../lib/network/outbound-http.ts";
import type { PostOutbound } from "../lib/network/outbound-post.ts";
import { signWebhook } from "../lib/network/webhook-signature.ts";
import { type Clock, HOUR_MS, SECOND_MS } from "../lib/time/clock.ts";
import type { Delivery, DeliveryLine, DeliveryOutcome } from "../store/deliveries/delivery.ts";
import { noteEvent } from "../store/resources/note-event.ts";
import type { Store } from "../store/store.ts";

export interface CallbacksDeps {
  store: Store;
  clock: Clock;
  post: PostOutbound;
  /** In the names of the headers. */
  brandWords: readonly string[];
  version: string;
}

const AT_ONCE_MAX = 64;
/** Concurrent callbacks of one workload: a slow receiver must not block the others. */
const OF_ONE_MAX = 8;
const AGAIN = { baseMs: 2 * SECOND_MS, maxMs: HOUR_MS };

export const callbackLine = (deps: CallbacksDeps): DeliveryLine => ({
  phase: "callback",
  atOnceMax: AT_ONCE_MAX,
  ofOneMax: OF_ONE_MAX,
  async deliver(delivery, signal) {
    const resource = await deps.store.resources.getByUid(delivery.workspace, delivery.uid);
    const url = resource && triggerNamed(resource, delivery.trigger_id)?.configuration?.callbackUrl;
    const secret = resource && deps.store.resources.secretsOf(resource)[callbackSecretKey(delivery.trigger_id)];
    // The trigger has no callback, or no longer has one.
    if (!url || !secret) return { do: "finish" };
    const problem = await send(delivery, url, secret, signal, deps);
    if (problem === null) return { do: "finish" };
    const outcome = afterProblem(delivery, problem, deps.clock.now());
    if (outcome.do === "finish")
      await noteEvent(deps.store, resource, {
        type: "callback-failed",
        message: `The callback of trigger '${delivery.trigger_id}' was given up: ${problem.message}`,
      });
    return outcome;
  },
});

interface Problem {
  message: string;
  /** Whether a retry is useless. */
  final: boolean;
}

async function send(
  delivery: Delivery,
  url: string,
  secret: string,
  signal: AbortSignal,
  { clock, post, brandWords, version }: CallbacksDeps,
): Promise<Problem | null> {
  const body = JSON.stringify(delivery.payload);
  const { signature, timestamp } = signWebhook(secret, body, clock.now());
  const signed = brandWords.flatMap((word) => [
    [`x-${word}-signature`, signature],
    [`x-${word}-timestamp`, timestamp],
  ]);
  const headers = {
    "content-type": "application/json",
    "user-agent": `berth/${version}`,
    ...(Object.fromEntries(signed) as Record<string, string>),
  };
  try {
    const status = await post({ url, headers, body, signal });
    if (status >= 200 && status < 300) return null;
    return { message: `the address answered ${status}.`, final: status === GONE };
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    return { message, final: error instanceof AddressRefused };
  }
}

/** HTTP status by which a receiver refuses all further attempts. */
const GONE = 410;

function afterProblem({ failures, deadline_at }: Delivery, { final }: Problem, nowMs: number): DeliveryOutcome {
  const afterMs = backoffMs(failures, AGAIN);
  return final || nowMs + afterMs > deadline_at ? { do: "finish" } : { do: "retry", afterMs, failed: true };
}
