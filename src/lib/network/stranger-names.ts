/**
 * Resolves names that tenants choose. Node's `lookup` holds a thread of the process for as long as the name server of
 * that name takes, and a few slow names would stop every other look-up of the server. `resolveName` asks the machine's
 * name servers without a thread. It reads the hosts file, but neither search domains nor other sources of the system.
 */
import { Resolver } from "node:dns/promises";
import { hostsFileAddresses } from "./hosts-file.ts";

/** Time for the first question to one name server; a repeated question waits longer. */
const QUESTION_WAIT_MS = 5_000;
const QUESTIONS_MAX = 2;
/** Time for a look-up in all. */
const LOOKUP_WAIT_MS = 15_000;

/** IPv4 addresses come first. Rejects when the name has no address. */
export async function resolveName(name: string): Promise<string[]> {
  const listed = await hostsFileAddresses(name);
  if (listed.length > 0) return listed;
  // A new resolver reads the current resolv.conf, and is cancelled without harm to other look-ups.
  const resolver = new Resolver({ timeout: QUESTION_WAIT_MS, tries: QUESTIONS_MAX });
  const timer = setTimeout(() => resolver.cancel(), LOOKUP_WAIT_MS).unref();
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    const failure = answers.find((answer) => answer.status === "rejected");
    if (addresses.length === 0 && failure) throw failure.reason;
    return addresses;
  } finally {
    clearTimeout(timer);
  }
}
