/**
 * The ways out of a workload: NAT and proxy against a plain veth, a thousand rules against one, TLS that ends at the proxy
 * against a bare Node proxy, and how soon a changed rule holds. Needs root and nft, or apt-get for Debian's.
 */
import { execFileSync } from "node:child_process";
import { ownNetwork } from "../test/local/own-network.ts";
import { interception } from "./egress-parts/interception.ts";
import { table } from "./measure.ts";

const INTERCEPTION_MS = 3000;

interface Way {
  p50Ms: number;
  mbPerS: number;
}

interface World {
  rounds: Record<"direct" | "nat" | "bare" | "proxy", Way[]>;
  few: Way[];
  many: Way[];
  effects: number[];
}

export async function run(): Promise<void> {
  const { bare, ours } = await interception(INTERCEPTION_MS);
  table("HTTPS requests on one connection, TLS ends at the proxy", [
    { proxy: "bare Node proxy", "requests/s": bare.perSecond, "p50 ms": bare.p50Ms, ratio: 1 },
    {
      proxy: "egress proxy",
      "requests/s": ours.perSecond,
      "p50 ms": ours.p50Ms,
      ratio: ours.perSecond / bare.perSecond,
    },
  ]);
  const network = ownNetwork();
  if (typeof network === "string") return console.log(`\nNAT ${network}.`);
  const args = [...network.args, process.execPath, "bench/egress-parts/world.ts"];
  const lines = execFileSync("unshare", args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const { rounds, few, many, effects } = JSON.parse(lines.trim().split("\n").at(-1) ?? "") as World;
  const reference = middle(rounds.direct);
  const names = { direct: "plain veth", nat: "NAT", bare: "NAT to a bare Node proxy", proxy: "egress proxy" };
  table(
    "From a workload to a host behind a veth (medians of 3 rounds)",
    (Object.keys(names) as (keyof typeof names)[]).map((way) => {
      const { p50Ms, mbPerS } = middle(rounds[way]);
      const added = p50Ms - reference.p50Ms;
      return {
        way: names[way],
        "connect p50 ms": p50Ms,
        "added ms": added,
        "MB/s": mbPerS,
        "of veth": mbPerS / reference.mbPerS,
      };
    }),
  );
  const [one, thousand] = [middle(few), middle(many)];
  table("Rules on a workload, through the proxy (medians of 7 rounds, in turn)", [
    { rules: 1, "connect p50 ms": one.p50Ms, "added ms": 0 },
    { rules: 1000, "connect p50 ms": thousand.p50Ms, "added ms": thousand.p50Ms - one.p50Ms },
  ]);
  table("A changed rule holds after, ms", [{ "worst of 5": Math.max(...effects), median: median(effects) }]);
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const middle = (ways: Way[]): Way => ({
  p50Ms: median(ways.map(({ p50Ms }) => p50Ms)),
  mbPerS: median(ways.map(({ mbPerS }) => mbPerS)),
});
