/**
 * Bandwidth limits of workloads with a network of their own: a token bucket (tbf) on each end of the workload's veth. The
 * end inside limits what the workload sends; the network namespace is the machine's, so nobody inside can change it.
 */
import { type Bandwidth, bytesPerSecond } from "../../../../lib/network/egress/bandwidth.ts";
import { run } from "./tools.ts";

/** Where a workload is attached. */
export interface Attachment {
  ipv4: string;
  /** The machine's end of its veth. */
  link: string;
  /** A process of its network namespace. */
  pid: number;
}

/** Bytes that leave at once: enough for the timer of the kernel (10 ms), and for one large segment at low rates. */
const burstBytes = (mbps: number): number => Math.max(64 * 1024, Math.ceil(bytesPerSecond(mbps) / 100));
/** Longer queues only add delay. */
const LATENCY = "100ms";
/** Enters the namespace, and goes on only when the interface has this address: the process may be gone, its id reused. */
const INSIDE = `ip -4 -o address show dev eth0 | grep -qF " $0/" && exec tc qdisc "$@"`;

export class NatShaper {
  /** The limits in force by IPv4 address; absent = unknown, as after a restart of the server. */
  readonly #applied = new Map<string, string>();

  /** The workload has new interfaces, which have no limit. */
  attached({ ipv4 }: Pick<Attachment, "ipv4">): void {
    this.#applied.set(ipv4, JSON.stringify(null));
  }

  async set(at: Attachment, bandwidth: Bandwidth | null): Promise<void> {
    const wanted = JSON.stringify(bandwidth);
    if (this.#applied.get(at.ipv4) === wanted) return;
    this.#applied.delete(at.ipv4);
    await qdisc(bandwidth?.receiveMbps ?? null, at.link, (args) => run("tc", ["qdisc", ...args]));
    await qdisc(bandwidth?.sendMbps ?? null, "eth0", (args) =>
      run("nsenter", ["-t", String(at.pid), "-n", "sh", "-c", INSIDE, at.ipv4, ...args]),
    );
    this.#applied.set(at.ipv4, wanted);
  }

  forget(ipv4: string): void {
    this.#applied.delete(ipv4);
  }
}

async function qdisc(mbps: number | null, device: string, change: (args: string[]) => Promise<unknown>): Promise<void> {
  const on = ["dev", device, "root"];
  if (mbps === null) return void (await change(["delete", ...on]).catch(() => {})); // there may be none
  const rate = ["rate", `${Math.round(mbps * 1_000_000)}bit`, "burst", String(burstBytes(mbps)), "latency", LATENCY];
  await change(["replace", ...on, "tbf", ...rate]);
}
