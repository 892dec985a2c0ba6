/**
 * Name resolution for connections on behalf of a tenant. The check runs on the resolved address that is dialled, so a
 * name that resolves differently between check and use (DNS rebinding) gains nothing.
 */
import { type LookupAddress, lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { classifyAddress } from "./address-class.ts";

export interface AddressGuard {
  /** Throws for a literal address that may not be dialled; names are checked after they are resolved. */
  check(host: string): void;
  lookup: LookupFunction;
}

export function addressGuard(options: { privateAddresses: boolean; refused(host: string): Error }): AddressGuard {
  const allows = (address: string): boolean => {
    const kind = classifyAddress(address);
    return kind === "public" || (kind === "private" && options.privateAddresses);
  };
  return {
    check(host) {
      const plain = host.replace(/^\[|\]$/g, "");
      if (isIP(plain) && !allows(plain)) throw options.refused(plain);
    },
    lookup(hostname, lookupOptions, callback) {
      lookup(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
        if (error) return callback(error, "", 0);
        const allowed = addresses.filter(({ address }) => allows(address));
        const [first] = allowed;
        if (!first) return callback(options.refused(hostname), "", 0);
        if (lookupOptions.all) (callback as (error: null, addresses: LookupAddress[]) => void)(null, allowed);
        else callback(null, first.address, first.family);
      });
    },
  };
}
