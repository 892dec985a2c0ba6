/**
 * Finds out whether traffic of this machine can leave from an address: the machine has the address (a socket can be bound
 * to it) and a route for it, and a server outside sees it, where the operator names one that answers with the address of
 * its client.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIP, isIPv6 } from "node:net";
import { parseAddress } from "../../lib/network/address-class.ts";

export interface AddressProof {
  /** `waiting`: nothing leaves from the address now. `failed`: traffic leaves, and from another address. */
  outcome: "held" | "waiting" | "failed";
  /** How far the proof went. */
  by: "route" | "probe";
  message: string;
}

/** Documentation addresses. Connecting a UDP socket to one looks up the route and sends nothing. */
const FAR_AWAY = { 4: "198.51.100.1", 6: "2001:db8::1" } as const;
const DISCARD_PORT = 9;
const PROBE_WAIT_MS = 20_000;
const ANSWER_MAX_BYTES = 4096;

/**
 * `probes`: URLs of servers that answer with the address of their client. `isProven`: a probe saw the address lately, so
 * only the machine is asked.
 */
export async function proveAddress(
  address: string,
  { probes, isProven }: { probes: readonly string[]; isProven: boolean },
): Promise<AddressProof> {
  const family = isIPv6(address) ? 6 : 4;
  const problem = await bindingProblem(address, family);
  if (problem === "absent")
    return waiting(
      `The address ${address} is reserved. No interface of this server has it, so nothing leaves from it.`,
    );
  if (isProven) return { outcome: "held", by: "probe", message: `Traffic leaves from ${address}.` };
  for (const probe of probes) {
    const seen = await askProbe(probe, address, family);
    if (seen !== "no-such-family") return judged(address, probe, seen);
  }
  if (problem === "unrouted")
    return waiting(`The address ${address} is on this server, which has no route from it to the outside.`);
  const unproven = probes.length === 0 ? "egress_probe names no probe" : `no probe has an IPv${family} address`;
  const message = `Traffic leaves from ${address}: the address is on this server and has a route. Nobody outside was asked: ${unproven}.`;
  return { outcome: "held", by: "route", message };
}

const waiting = (message: string): AddressProof => ({ outcome: "waiting", by: "route", message });

function judged(address: string, probe: string, seen: { text: string } | { problem: string }): AddressProof {
  if ("problem" in seen)
    return {
      ...waiting(`The probe ${probe} does not answer a request from ${address}: ${seen.problem}.`),
      by: "probe",
    };
  const others = addressesIn(seen.text);
  if (others.some((other) => sameAddress(other, address)))
    return { outcome: "held", by: "probe", message: `Traffic leaves from ${address}: the probe ${probe} saw it.` };
  if (others.length === 0)
    return { ...waiting(`The probe ${probe} does not answer with the address of its client.`), by: "probe" };
  const message = `The probe ${probe} saw ${others[0]} instead of ${address}: the address is translated on its way.`;
  return { outcome: "failed", by: "probe", message };
}

async function bindingProblem(address: string, family: 4 | 6): Promise<"absent" | "unrouted" | null> {
  const socket = createSocket(`udp${family}`);
  try {
    socket.bind({ address, port: 0, exclusive: true });
    await once(socket, "listening");
  } catch {
    socket.close();
    return "absent";
  }
  try {
    socket.connect(DISCARD_PORT, FAR_AWAY[family]);
    await once(socket, "connect");
    return null;
  } catch {
    return "unrouted";
  } finally {
    socket.close();
  }
}

type Seen = { text: string } | { problem: string } | "no-such-family";

function askProbe(url: string, localAddress: string, family: 4 | 6): Promise<Seen> {
  const literal = isIP(new URL(url).hostname.replace(/^\[|\]$/g, ""));
  if (literal !== 0 && literal !== family) return Promise.resolve("no-such-family");
  // Loaded when a probe is asked: most servers have none.
  const { request } = process.getBuiltinModule(url.startsWith("https:") ? "node:https" : "node:http");
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(PROBE_WAIT_MS);
    const asked = request(url, { localAddress, family, agent: false, signal, headers: { accept: "text/plain" } });
    asked.once("error", ({ code, message }: NodeJS.ErrnoException) =>
      resolve(code === "ENOTFOUND" ? "no-such-family" : { problem: code ?? message }),
    );
    asked.once("response", (answer) => {
      let text = "";
      answer.setEncoding("latin1");
      answer.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > ANSWER_MAX_BYTES) asked.destroy();
      });
      answer.once("close", () =>
        resolve(answer.statusCode === 200 ? { text } : { problem: `status ${answer.statusCode}` }),
      );
    });
    asked.end();
  });
}

const addressesIn = (text: string): string[] =>
  (text.match(/[0-9a-f:.]{3,45}/gi) ?? []).filter((word) => parseAddress(word) !== null);

function sameAddress(one: string, other: string): boolean {
  const [first, second] = [parseAddress(one), parseAddress(other)];
  return first !== null && second !== null && Buffer.compare(first, second) === 0;
}
