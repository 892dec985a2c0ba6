/**
 * The host of a destination in its one spelling. Rules are compared and connections are made with this spelling only, so
 * that `EXAMPLE.com.`, `%65xample.com` and `example.com` are one host, and `0x7f.1` is the address 127.0.0.1.
 */
import { parseAddress } from "../address-class.ts";

export interface Host {
  /** A name in lower case and punycode without a final dot, or an address in its shortest spelling. */
  readonly text: string;
  /** Four or sixteen bytes when the host is an address; null when the host is a name. */
  readonly address: Uint8Array | null;
}

const NAME_BYTES_MAX = 253;
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
const PLAIN_NAME = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z0-9]*$/;
/** Characters that would make a URL parser see something else than a host. */
const NOT_A_HOST = /[\s/\\?#@:*,;]/;

/** Null when the text is neither a name nor an address. IPv6 addresses are taken with and without brackets. */
export function parseHost(text: string): Host | null {
  const plain = text.replace(/^\[(.*)\]$/, "$1");
  if (plain.includes(":")) return hostOfAddress(plain);
  if (plain !== text || NOT_A_HOST.test(text)) return null;
  const name = PLAIN_NAME.test(text) ? text : canonicalName(text);
  if (name === null) return null;
  return hostOfAddress(name) ?? hostOfName(name);
}

/** The host of an address that was resolved. */
export function hostOfAddress(text: string): Host | null {
  const address = text.includes("%") ? null : parseAddress(text);
  return address ? { text: addressText(address), address } : null;
}

function hostOfName(name: string): Host | null {
  const isName = name.length <= NAME_BYTES_MAX && name.split(".").every((label) => LABEL.test(label));
  return isName ? { text: name, address: null } : null;
}

/** As browsers do: Unicode becomes punycode, escapes are decoded, numbers become addresses. */
function canonicalName(text: string): string | null {
  const url = `http://${text}/`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, "") : null;
}

export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const words = Array.from({ length: 8 }, (_, at) =>
    ((bytes[at * 2] ?? 0) * 256 + (bytes[at * 2 + 1] ?? 0)).toString(16),
  );
  return new URL(`http://[${words.join(":")}]/`).hostname.slice(1, -1);
}
