/** Opening the machine of a server, which may not be there yet when the server starts. */
import type { Deps } from "../kinds/port.ts";
import { type BackoffOptions, backoffMs } from "../lib/backoff.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import type { LazyDriver } from "../node/lazy-driver.ts";

/** Between attempts to open a machine: a Docker Engine that starts after this server, a cluster that is away. */
const OPEN_AGAIN = { baseMs: 2 * SECOND_MS, maxMs: 30 * SECOND_MS };

interface Opening {
  /** Resolves after the first attempt, however that ended. */
  tried: Promise<void>;
  giveUp(): void;
}

/** Opens the machine, again and again while that fails, and calls `opened` once. A reason is logged when it is new. */
export function keepOpening(
  driver: Pick<LazyDriver, "opened">,
  log: Pick<Deps["log"], "info" | "error">,
  opened: () => Promise<void>,
  again: BackoffOptions = OPEN_AGAIN,
): Opening {
  let timer: NodeJS.Timeout | undefined;
  let told = "";
  let givenUp = false;
  const attempt = async (count: number): Promise<void> => {
    try {
      await driver.opened();
      if (count > 0) log.info({}, "workloads can run on this machine now");
      await opened();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== told) log.error({ err: error }, "workloads cannot run on this machine");
      told = reason;
      if (!givenUp) timer = setTimeout(() => attempt(count + 1), backoffMs(count, again)).unref();
    }
  };
  return {
    tried: attempt(0),
    giveUp() {
      givenUp = true;
      clearTimeout(timer);
    },
  };
}
