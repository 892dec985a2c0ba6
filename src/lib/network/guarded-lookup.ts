/**
 * Name resolution for whoever dials on behalf of a tenant. The address is judged after the name was resolved, on the
 * very address that is dialled, so a name that changes its mind between check and use gains nothing.
 */
import { type LookupAddress, lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { classifyAddress } from "./address-class.ts";

export interface AddressGuard {
  /** Throws for a host that is an address itself and may not be dialled; names are judged once they are resolved. */
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
