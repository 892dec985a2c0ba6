/**
 * A request must name one host: one Host field with one value, and the same host in an absolute target. With two hosts,
 * a proxy in front, the gateway and a workload could each use another one.
 */
import { ABSOLUTE_FORM, hostName } from "../route.ts";

const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+;=%-]*)(?::[0-9]*)?$/;

export const isHost = (value: string): boolean => HOST.test(value);

/** `rawHeaders`: names and values alternating. The parser decides whether a Host field is required. */
export function namesOneHost(target: string, rawHeaders: readonly string[]): boolean {
  let host: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length !== 4 || name.toLowerCase() !== "host") continue;
    if (host !== null) return false;
    host = rawHeaders[i + 1] as string;
  }
  if (host === null) return true;
  if (!isHost(host)) return false;
  const absolute = ABSOLUTE_FORM.exec(target)?.[1];
  return absolute === undefined || hostName(absolute) === hostName(host);
}
