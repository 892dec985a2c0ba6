/**
 * Connecting to the daemon of a sandbox. The daemon is away for a moment while a newer one takes its place, and the
 * sandbox itself after a restart of the machine or of the platform, so a failed attempt is repeated for a while.
 */
import { setTimeout as pause } from "node:timers/promises";

const DAEMON_AWAY_MS = 8000;
const DAEMON_LOOK_MS = 20;

/** `endpointNow` is asked before each attempt: a sandbox that was started anew has another endpoint. */
export async function dialDaemon<Endpoint, Connection>(
  endpointNow: () => Endpoint,
  dial: (endpoint: Endpoint) => Promise<Connection>,
): Promise<Connection> {
  for (const deadlineMs = performance.now() + DAEMON_AWAY_MS; ; ) {
    try {
      return await dial(endpointNow());
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
      await pause(DAEMON_LOOK_MS);
    }
  }
}
