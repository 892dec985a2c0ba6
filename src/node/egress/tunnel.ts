/**
 * A tunnel (CONNECT) of a workload that has rules. The server's bytes pass at once. The first bytes of the client wait
 * until they are known to be for the host that was asked for: a server of many hosts would answer for another one.
 */
import type { Duplex } from "node:stream";
import { parseHost } from "../../lib/network/egress/host.ts";
import type { OutboundPolicy } from "../../lib/network/egress/outbound-policy.ts";
import type { OpenConnection } from "./dialler.ts";
import { type FirstFlight, firstFlight } from "./first-flight.ts";
import { HOST_MISMATCH } from "./judge-request.ts";
import { flow, join } from "./pace.ts";
import type { Target } from "./target.ts";

/** Ports of protocols that tell the name of the host first. */
const NAMED_PORTS = [80, 443];
/** A TLS alert: fatal, access denied. */
export const ACCESS_DENIED = Buffer.from([21, 3, 3, 0, 2, 2, 49]);

export interface TunnelOptions {
  policy: OutboundPolicy;
  /** The platform reads what goes to this host, so TLS ends here. */
  reads: boolean;
  /** Takes a connection over whose requests the platform reads and judges one by one. */
  onRequests(flight: FirstFlight): void;
  onRefused(rule: string): void;
}

export async function checkedTunnel(
  client: Duplex,
  head: Buffer,
  connection: OpenConnection,
  { policy, reads, onRequests, onRefused }: TunnelOptions,
): Promise<void> {
  const { socket: upstream, target, paces } = connection;
  const hangUp = (): void => void client.destroy();
  const stopEarly = flow(upstream, client, paces.receive);
  upstream.once("close", hangUp);
  const flight = await firstFlight(client, head);
  stopEarly();
  upstream.removeListener("close", hangUp);
  if (client.destroyed || upstream.destroyed) {
    client.destroy();
    return void upstream.destroy();
  }
  if (flight.protocol === "http") return onRequests(flight);
  const rule = reads && flight.protocol === "tls" ? nameRefusal(flight, target) : flightRefusal(flight, target, policy);
  if (rule !== null) {
    onRefused(rule);
    upstream.destroy();
    return void (["tls", "unclear"].includes(flight.protocol) ? client.end(ACCESS_DENIED) : client.destroy());
  }
  connection.checked = true;
  if (reads && flight.protocol === "tls") return onRequests(flight);
  if (flight.bytes.length > 0) upstream.write(flight.bytes);
  join(client, upstream, paces);
}

/** Where TLS ends here, an encrypted name hides nothing: the server is asked for the host of the connection. */
function nameRefusal(flight: FirstFlight, { host }: Target): string | null {
  if (flight.protocol !== "tls" || flight.hello.serverName === null) return null;
  return parseHost(flight.hello.serverName)?.text === host.text ? null : HOST_MISMATCH;
}

/** The rule against these first bytes; null when there is none. */
export function flightRefusal(flight: FirstFlight, { host, port }: Target, policy: OutboundPolicy): string | null {
  if (flight.protocol === "unclear") return "the rule that the first message of TLS can be read";
  if (flight.protocol !== "tls")
    return flight.protocol === "other" && policy.listsNames && !host.address && NAMED_PORTS.includes(port)
      ? "the rule that a connection with a list of allowed domains tells its host"
      : null;
  const { serverName, encrypted } = flight.hello;
  if (encrypted && policy.listsNames) return "the rule that no name is encrypted (ECH) with a list of allowed domains";
  if (serverName === null)
    return policy.listsNames && !host.address
      ? "the rule that a connection with a list of allowed domains tells its host"
      : null;
  const asked = parseHost(serverName);
  if (asked?.text === host.text) return null;
  if (!asked || !host.address) return HOST_MISMATCH;
  const listed = policy.judge({ ...{ host: asked, port, address: host.address }, transport: "tcp" });
  return listed.allowed ? null : listed.rule;
}
