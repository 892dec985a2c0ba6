/**
 * Connects to the daemon of a sandbox. The daemon is unreachable for a moment while a newer one replaces it, and so is
 * the sandbox after a restart of the machine or the platform, so a failed attempt is retried for a while.
 */
import { setTimeout as pause } from "node:timers/promises";

const DAEMON_AWAY_MS = 8000;
const DAEMON_LOOK_MS = 20;

/** `endpointNow` is called before each attempt: a restarted sandbox has another endpoint. */
export async function dialDaemon<Endpoint, Connection>(
  endpointNow: () => Endpoint | Promise<Endpoint>,
  dial: (endpoint: Endpoint) => Promise<Connection>,
): Promise<Connection> {
  for (const deadlineMs = performance.now() + DAEMON_AWAY_MS; ; ) {
    try {
      return await dial(await endpointNow());
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
      await pause(DAEMON_LOOK_MS);
    }
  }
}
