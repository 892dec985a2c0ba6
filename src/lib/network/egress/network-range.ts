/** A range of addresses in the notation `address/prefix`; an address without a prefix is a range of one. */
import { isIPv6 } from "node:net";
import { parseAddress } from "../address-class.ts";
import { RuleProblem } from "./rule-problem.ts";

export interface NetworkRange {
  readonly bytes: Uint8Array;
  readonly prefix: number;
}

/** Throws RuleProblem for a text that is no range, or whose address does not begin the range. */
export function parseRange(text: string, path: string): NetworkRange {
  const [address = "", prefixText, ...more] = text.split("/");
  const bytes = address.includes("%") ? null : parseAddress(address);
  if (!bytes || more.length > 0)
    throw new RuleProblem(path, `'${text.slice(0, 80)}' is not a range of addresses such as 203.0.113.0/24`);
  if (isIPv6(address) && bytes.length === 4)
    throw new RuleProblem(
      path,
      `'${text.slice(0, 80)}' is an IPv4 address within an IPv6 one; write ${bytes.join(".")} and its prefix`,
    );
  const bits = bytes.length * 8;
  const prefix = prefixText === undefined ? bits : Number(prefixText);
  if (!/^\d{0,3}$/.test(prefixText ?? "") || prefixText === "" || prefix > bits)
    throw new RuleProblem(path, `the prefix of '${text.slice(0, 80)}' must be a number from 0 to ${bits}`);
  const range = { bytes: masked(bytes, prefix), prefix };
  if (Buffer.compare(range.bytes, bytes) !== 0)
    throw new RuleProblem(path, `'${text.slice(0, 80)}' has bits set beyond its prefix of ${prefix}`);
  return range;
}

/** Allocates nothing: a connection may be compared with many ranges. */
export function rangeHolds({ bytes, prefix }: NetworkRange, address: Uint8Array): boolean {
  if (bytes.length !== address.length) return false;
  const whole = prefix >> 3;
  for (let index = 0; index < whole; index++) if (bytes[index] !== address[index]) return false;
  const bits = prefix & 7;
  return bits === 0 || ((bytes[whole] ?? 0) ^ (address[whole] ?? 0)) >> (8 - bits) === 0;
}

/** The first address of the range of this prefix that holds the address. */
export const masked = (bytes: Uint8Array, prefix: number): Uint8Array =>
  bytes.map((byte, index) => byte & (0xff << (8 - Math.min(8, Math.max(0, prefix - index * 8)))) & 0xff);
