/**
 * Whether the peer at this hop is a proxy of the operator, whose `X-Forwarded-For` counts. The first hop is the peer of
 * the connection. A connection without an address comes from inside a workload, which writes there whatever it likes.
 */
export const isTrustedHop = (address: string | undefined, hop: number, proxies: number): boolean =>
  Boolean(address) && hop < proxies;
