/**
 * Look-ups by the system, with its search domains and other sources. Each holds one of the few threads of the process
 * for as long as a name server takes, and files are read by the same threads. So one runs at a time.
 */
import { lookup } from "node:dns/promises";
import { FairQueue } from "../fair-queue.ts";

/** Of the four threads that Node has by default. */
const AT_ONCE = 1;
/** Further ones are refused: each waits for those before it. */
const WAITING_MAX = 64;
/** There is one line for all. */
const OWNER = "";

type Lookup = (name: string, options: { all: true }) => Promise<{ address: string }[]>;

export function createSystemLookup(ask: Lookup = lookup): (name: string) => Promise<string[]> {
  const turns = new FairQueue({ atOnce: AT_ONCE, waitingMax: WAITING_MAX });
  return async (name) => {
    const found = turns.run(OWNER, () => ask(name, { all: true }));
    if (!found) throw new Error(`Too many names wait to be looked up; '${name}' was not. Try again later.`);
    return (await found).map(({ address }) => address);
  };
}
