import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { ownNetworks } from "./own-networks.ts";

const skip = ownNetworks(4) === null ? "needs Linux" : false;
const textOf = (bytes: Uint8Array): string =>
  bytes.length === 4 ? bytes.join(".") : Buffer.from(bytes).toString("hex");

test("the tables of the kernel hold every address that Node finds on this machine", { skip }, () => {
  const found = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const own = (ownNetworks(4) ?? []).map(({ bytes, prefix }) => `${textOf(bytes)}/${prefix}`);
  for (const { address, family } of found) if (family === "IPv4") assert.ok(own.includes(`${address}/32`), address);
  const six = found.filter(({ family }) => family === "IPv6").length;
  assert.ok((ownNetworks(16) ?? []).length >= six);
});

const SCRIPT = `
import { execFileSync } from "node:child_process";
import { classifyAddress } from "./src/lib/network/address-class.ts";
const ip = (...args) => execFileSync("ip", args);
const all = () => ["203.0.113.7", "203.0.113.8", "198.51.100.77", "2606:4700:113::7"].map(classifyAddress).join(" ");
ip("link", "set", "lo", "up");
const before = all();
ip("address", "add", "203.0.113.7/32", "dev", "lo");
ip("route", "add", "local", "198.51.100.0/24", "dev", "lo");
try { ip("address", "add", "2606:4700:113::7/128", "dev", "lo"); } catch {}
console.log(before + " | " + all());
`;

const IPV6_SCRIPT = `
import { execFileSync } from "node:child_process";
import { setTimeout } from "node:timers/promises";
import { classifyAddress } from "./src/lib/network/address-class.ts";
const ip = (...args) => execFileSync("ip", args);
const all = () => ["2606:4700:114:1::7", "2606:4700:115::7"].map(classifyAddress).join(" ");
ip("link", "set", "lo", "up");
const before = all();
ip("-6", "route", "add", "local", "2606:4700:114::/48", "dev", "lo");
ip("-6", "route", "add", "2606:4700:115::/48", "dev", "lo");
// The table is read again after a second.
for (const end = Date.now() + 30_000; all() === before && Date.now() < end; ) await setTimeout(100);
console.log(before + " | " + all());
`;

test("an IPv6 network that a route makes local is the machine's own, and one that a route leads to is not", {
  skip:
    spawnSync("unshare", ["-n", "ip", "-6", "route"]).status !== 0
      ? "needs root, `unshare`, `ip` and IPv6"
      : existsSync("/proc/net/ipv6_route")
        ? false
        : "needs IPv6",
}, () => {
  const args = ["-n", process.execPath, "--input-type=module", "-e", IPV6_SCRIPT];
  const { stdout, stderr } = spawnSync("unshare", args, { encoding: "utf8" });
  assert.equal(stdout, "public public | private public\n", stderr);
});

test("an address that the machine gets is its own at once, also one of a network that a route makes local", {
  skip: spawnSync("unshare", ["-n", "ip", "link"]).status === 0 ? skip : "needs root, `unshare` and `ip`",
}, () => {
  const args = ["-n", process.execPath, "--input-type=module", "-e", SCRIPT];
  const { stdout, stderr } = spawnSync("unshare", args, { encoding: "utf8" });
  assert.match(stdout, /^public public public public \| private public private (private|public)\n$/, stderr);
});
