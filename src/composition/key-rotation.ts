/**
 * Rotates the secret key inside a server: resumes an interrupted rotation, and starts one that the operator asks for.
 */
import type { Logger } from "pino";
import { rotateKey } from "../auth/rotate-key.ts";
import { type KeySettings, readNextKey } from "../auth/secret-key.ts";
import type { Running } from "../lib/lifecycle.ts";
import { fingerprintOf } from "../lib/sealed-box.ts";
import type { Store } from "../store/store.ts";

/** Pause after a failure, which is nearly always an unreachable database. */
const RETRY_MS = 5000;

export interface KeyRotation extends Running {
  /** Goes over to the next key, when there is one. Returns at once. */
  rotate(): void;
}

export function startKeyRotation({
  store,
  settings,
  log,
}: {
  store: Store;
  settings: KeySettings;
  log: Logger;
}): KeyRotation {
  const abort = new AbortController();
  let running: Promise<void> | null = null;
  let retry: NodeJS.Timeout | null = null;

  /** The rotation that is under way, or the one that the operator has prepared. */
  async function target(): Promise<string | null> {
    const { fingerprint, rotation } = await store.keyRecords.state();
    const next = readNextKey(settings);
    const to = rotation?.to ?? (next && fingerprintOf(next));
    return to === fingerprint ? null : to;
  }

  async function work(): Promise<void> {
    try {
      const to = await target();
      if (to === null) return log.warn({}, "there is no next key to rotate to");
      log.info({ key: to }, "the secrets are sealed anew");
      const { resealed, unreadable } = await rotateKey(store, to, { signal: abort.signal });
      log.info({ key: to, resealed, unreadable }, "all secrets are sealed with the new key");
    } catch (error) {
      if (abort.signal.aborted) return;
      log.error({ err: error }, "the rotation of the secret key failed and is tried again");
      retry = setTimeout(rotate, RETRY_MS).unref();
    }
  }

  function rotate(): void {
    running ??= work().finally(() => {
      running = null;
    });
  }

  const resume = store.keyRecords.state().then(
    ({ rotation }) => rotation && rotate(),
    (error: unknown) => log.error({ err: error }, "the state of the secret key could not be read"),
  );
  return {
    rotate,
    async stop() {
      abort.abort();
      if (retry) clearTimeout(retry);
      await resume;
      await running;
    },
  };
}
