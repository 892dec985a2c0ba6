/** Runs a request once however often it is sent with the same Idempotency-Key. */
import { createHash } from "node:crypto";
import { PlatformError } from "../contract/errors.ts";
import type { Call, Platform } from "../kinds/port.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import { IDEMPOTENCY_TOPIC, type StoredAnswer } from "../store/idempotency.ts";

const KEY_LENGTH_MAX = 255;
/** How long a retry waits for the first request before it is refused. */
const WAIT_MAX_MS = 60 * SECOND_MS;
/** Poll interval, in case the notification about the finished request is lost. */
const LOOK_AGAIN_MS = 2 * SECOND_MS;

type Result = { status: number; body: string | null };

export async function answerOnce(
  key: string,
  call: Call,
  run: (uid: string) => Promise<Result>,
  deps: Platform,
): Promise<Result> {
  if (key.length > KEY_LENGTH_MAX)
    throw new PlatformError(
      "invalid_parameter",
      `Idempotency-Key must not be longer than ${KEY_LENGTH_MAX} characters.`,
    );
  const { store } = deps;
  const scope = [
    call.caller.subject,
    call.workspace?.name ?? "",
    call.operation.id,
    ...Object.values(call.params),
  ].join("\n");
  const bodyHash = createHash("sha256")
    .update(canonicalJson([call.body ?? null, call.query]))
    .digest("hex");
  for (const deadline = deps.clock.now() + WAIT_MAX_MS; ; ) {
    const changed = nextFinish(deps);
    const claim = await store.idempotency.claim(scope, key, bodyHash, call.requestId);
    if (claim.outcome === "other_body") {
      throw new PlatformError(
        "idempotency_conflict",
        "This Idempotency-Key was used with another request. Use a new key for a new request.",
      );
    }
    if (claim.outcome === "answered") return claim.answer;
    if (claim.outcome === "claimed") return execute(scope, key, call.requestId, () => run(claim.uid), deps);
    if (deps.clock.now() > deadline)
      throw new PlatformError(
        "idempotency_conflict",
        "The first request with this Idempotency-Key is still running. Try again later.",
      );
    await changed;
  }
}

async function execute(
  scope: string,
  key: string,
  holder: string,
  run: () => Promise<Result>,
  deps: Platform,
): Promise<Result> {
  try {
    const result = await run();
    const stored: StoredAnswer = { status: result.status, body: result.body ?? "null" };
    await deps.store.idempotency.answer(scope, key, stored);
    return result;
  } catch (error) {
    await deps.store.idempotency.release(scope, key, holder);
    throw error;
  }
}

function nextFinish(deps: Platform): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      unsubscribe();
      resolve();
    };
    const timer = setTimeout(done, LOOK_AGAIN_MS);
    timer.unref();
    const unsubscribe = deps.store.database.onChange(({ topic }) => {
      if (topic === IDEMPOTENCY_TOPIC) done();
    });
  });
}
