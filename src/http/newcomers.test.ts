import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { Newcomers } from "./newcomers.ts";

/** What `Newcomers` uses of a connection. */
class Connection extends EventEmitter {
  destroyed = false;
  readonly remoteAddress: string;
  readonly remotePort: number;

  constructor(remoteAddress: string, remotePort: number) {
    super();
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

test("a flood from the /64 networks of one /48 closes its own connections, not the few of somebody else", () => {
  const newcomers = new Newcomers(64);
  const add = (address: string, port: number): Connection => {
    const made = new Connection(address, port);
    newcomers.add(made as unknown as Socket);
    return made;
  };
  const flood = (from: number): Connection[] =>
    Array.from({ length: 64 }, (_, index) => add(`2001:db8:1:${(from + index).toString(16)}::1`, 1000));
  flood(0);
  const own = Array.from({ length: 6 }, (_, index) => add("203.0.113.7", 2000 + index));
  flood(64);
  assert.deepEqual(
    own.map(({ destroyed }) => destroyed),
    own.map(() => false),
  );
  assert.equal(newcomers.size, 64);
});
