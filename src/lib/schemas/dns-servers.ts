/** The setting of DNS servers: addresses, each with a port or without. */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { z } from "zod";
import { list } from "./setting-values.ts";

const PORT_MAX = 65_535;

/** `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`. */
export function isDnsServer(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, six, four, port] = /^(?:\[(.+)\]|([\d.]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isAddress = six === undefined ? isIPv4(four ?? "") : isIPv6(six);
  return isAddress && (port === undefined || (Number(port) > 0 && Number(port) <= PORT_MAX));
}

const dnsServer = z
  .string()
  .refine(isDnsServer, { error: "must be addresses such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353" });

export const dnsServers = list.pipe(z.array(dnsServer));

export const dnsSettings = {
  dns_servers: {
    env: "BERTH_DNS_SERVERS",
    schema: dnsServers.default([]),
    about: "DNS servers to check custom domains with; absent = the machine's own.",
  },
} as const;
