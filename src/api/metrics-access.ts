/**
 * Who may read `/metrics`: this machine itself, and whoever brings the credentials of an account's admin. A request
 * that a proxy passed on is not this machine's, and neither is one from inside a workload.
 */
import type { FastifyRequest } from "fastify";
import type { Authenticator } from "../auth/authenticator.ts";
import { notFound, PlatformError } from "../contract/errors.ts";
import { clientOf } from "../http/peer-field.ts";
import { parseAddress } from "../lib/network/address-class.ts";

const PASSED_ON = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];
const IPV4_LOOPBACK = 127;

export async function requireScraper({ headers, raw }: FastifyRequest, authenticator: Authenticator): Promise<void> {
  const peer = clientOf(raw).address;
  // A connection from inside a workload is no connection of the network.
  if (peer === undefined) throw notFound("/metrics");
  const isPassedOn = PASSED_ON.some((name) => headers[name] !== undefined);
  if (isLoopback(peer) && !isPassedOn && headers.authorization === undefined) return;
  const caller = await authenticator.authenticate(authenticator.bearerOf(headers));
  if (!caller.accounts.some(({ role }) => role === "admin"))
    throw new PlatformError("forbidden", "Metrics are for admins of an account: scrape with the API key of one.");
}

function isLoopback(address: string): boolean {
  const bytes = parseAddress(address);
  if (!bytes) return false;
  return bytes.length === 4 ? bytes[0] === IPV4_LOOPBACK : bytes.every((byte, at) => byte === (at === 15 ? 1 : 0));
}
