/**
 * Name resolution for connections on behalf of a tenant. The check runs on the resolved address that is dialled, so a
 * name that resolves differently between check and use (DNS rebinding) gains nothing.
 */
import type { LookupAddress, LookupOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { classifyAddress } from "./address-class.ts";
import { resolveName } from "./stranger-names.ts";
import { createSystemLookup } from "./system-lookup.ts";

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
  const addressesOf = options.privateAddresses ? resolvePrivateName : resolveName;
  return {
    check(host) {
      const plain = host.replace(/^\[|\]$/g, "");
      if (isIP(plain) && !allows(plain)) throw options.refused(plain);
    },
    lookup(hostname, lookupOptions, callback) {
      addressesOf(hostname).then(
        (addresses) => {
          const allowed = addresses.filter((address) => allows(address) && fits(address, lookupOptions.family));
          const [first] = allowed;
          if (first === undefined) return callback(options.refused(hostname), "", 0);
          if (lookupOptions.all) callback(null, allowed.map(asLookup));
          else callback(null, first, isIP(first));
        },
        (error: Error) => callback(error, "", 0),
      );
    },
  };
}

/** Only a name inside the operator's own network may need search domains and the other sources of the system. */
const resolvePrivateName = (name: string): Promise<string[]> =>
  resolveName(name).catch((error: NodeJS.ErrnoException) => {
    // A name server that was silent would hold a thread for as long.
    if (!ABSENT.has(error.code ?? "")) throw error;
    return systemAddresses(name);
  });

const ABSENT: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA"]);

const systemAddresses = createSystemLookup();

const asLookup = (address: string): LookupAddress => ({ address, family: isIP(address) });

const fits = (address: string, family: LookupOptions["family"] = 0): boolean =>
  family === 0 || isIP(address) === Number(String(family).replace("IPv", ""));
