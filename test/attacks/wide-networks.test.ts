/** A client with a /48 has 65,536 networks of the size that counts as one client. It still gets one share of each limit. */
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { createAnonymousLimit } from "../../src/auth/oauth/anonymous-limit.ts";
import { OpenExchanges } from "../../src/gateway/open-exchanges.ts";
import { Connections } from "../../src/http/connections.ts";
import { Newcomers } from "../../src/http/newcomers.ts";
import { FailedTries } from "../../src/lib/failed-tries.ts";
import { NO_PROXIES } from "../../src/lib/network/proxies.ts";

const MAX = 64;
const VICTIMS = ["198.51.100.7", "2001:db8:2::1", "2001:db8:3::1"];
/** The attacker's networks, each used once. */
const attacker = (at: number): string => `2001:db8:1:${at.toString(16)}::1`;

/** A real socket that is not connected, with the address of a client. */
function socketOf(address: string, port = 1000): Socket {
  const socket = new Socket();
  Object.defineProperties(socket, { remoteAddress: { value: address }, remotePort: { value: port } });
  return socket;
}

test("connections from all networks of a /48 leave room for others", () => {
  const connections = new Connections(MAX, NO_PROXIES);
  const admits = (address: string): boolean => connections.admit(socketOf(address), true);
  for (let at = 0; at < 4 * MAX; at += 1) admits(attacker(at));
  for (const victim of VICTIMS) assert.ok(admits(victim), victim);
  assert.ok(!admits(attacker(5 * MAX)), "with others there, the /48 has more than its share");
});

test("half-open connections of a /48 push out each other, not those of others", () => {
  const newcomers = new Newcomers(MAX);
  // Two of each, as browsers open them.
  const victims = VICTIMS.flatMap((address) => [socketOf(address), socketOf(address, 1001)]);
  for (const victim of victims) newcomers.add(victim);
  for (let at = 0; at < 4 * MAX; at += 1) newcomers.add(socketOf(attacker(at)));
  assert.equal(newcomers.size, MAX);
  for (const victim of victims) assert.ok(!victim.destroyed, victim.remoteAddress);
});

test("open requests of strangers in a /48 leave room for others at a public workload and at the server", () => {
  const open = new OpenExchanges({ server: 8 * MAX, workspace: MAX, caller: MAX });
  const at = (uid: string) => ({ workload: { workspace: "ws", uid }, principal: null }) as never;
  const enters = (uid: string, address: string): boolean => {
    const has = open.hasRoom(at(uid), address);
    if (has) open.enter(at(uid), address);
    return has;
  };
  for (let count = 0; count < 4 * MAX; count += 1) enters("one", attacker(count));
  for (const victim of VICTIMS) assert.ok(enters("one", victim), victim);
  assert.ok(!enters("one", attacker(5 * MAX)));
});

test("tries with wrong credentials from a /48 are bounded together", () => {
  const clock = { now: () => 1_000_000 };
  const tries = new FailedTries(clock, 10);
  const looked = (step: number): number => {
    let count = 0;
    for (let at = 0; at < 255; at += 1) {
      const address = attacker(at * step);
      if (tries.waitMs(address, `guess ${at}`) > 0) continue;
      tries.failed(address, `guess ${at}`);
      count += 1;
    }
    return count;
  };
  assert.equal(looked(1), 40, "one /56 has four times the tries of one client");
  assert.equal(looked(256), 120, "one /48 sixteen times, of which its first /56 has used a quarter");
  for (const victim of VICTIMS) assert.equal(tries.waitMs(victim, "right"), 0, victim);
});

test("a /48 does not use up what all strangers may write together", () => {
  const limit = createAnonymousLimit({ now: () => 1_000_000 }, 10);
  for (let at = 0; at < 1000; at += 1)
    try {
      limit(attacker(at * 64));
    } catch {
      // refused
    }
  for (const victim of VICTIMS) limit(victim);
});
