/** Waits until the daemon inside a workload listens. */
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "../../../contract/errors.ts";
import { dial } from "../../dial/dial.ts";
import type { Endpoint } from "../../dial/endpoint.ts";

/** Time from the start of a container to a listening daemon; measured 60 ms, the rest is for a busy machine. */
const READY_WAIT_MS = 60_000;
const LOOK_MS = 5;
/** The daemon listens at its doors and its port door before these. */
const SOCKETS = ["api", "control"] as const;

/** False when `ended` resolves first: the container is no longer running. */
export async function listening(endpoint: Endpoint, ended: Promise<unknown>, signal?: AbortSignal): Promise<boolean> {
  let isOver = false;
  const over = ended.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  const until = performance.now() + READY_WAIT_MS;
  while (!isOver) {
    signal?.throwIfAborted();
    if (await answers(endpoint)) return true;
    if (performance.now() > until)
      throw new PlatformError("unavailable", "The workload did not become ready in time. Try again.");
    await Promise.race([over, delay(LOOK_MS)]);
  }
  return false;
}

async function answers(endpoint: Endpoint): Promise<boolean> {
  try {
    for (const name of SOCKETS) (await dial(endpoint, name)).destroy();
    return true;
  } catch {
    return false;
  }
}
