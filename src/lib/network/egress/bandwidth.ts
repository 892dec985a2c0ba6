/** How much a workload may send and receive, in megabits per second. */

/** Less would not carry the questions and answers that open a connection. */
export const BANDWIDTH_MIN_MBPS = 0.1;

export interface BandwidthSpec {
  sendMbps?: number | undefined;
  receiveMbps?: number | undefined;
}

/** Null: no limit in this direction. */
export interface Bandwidth {
  sendMbps: number | null;
  receiveMbps: number | null;
}

/** The lowest limit of each direction; null when there is none in either. */
export function lowestBandwidth(specs: readonly (BandwidthSpec | undefined)[]): Bandwidth | null {
  const lowest = (of: (spec: BandwidthSpec) => number | undefined): number | null => {
    const given = specs.flatMap((spec) => (spec && of(spec)) ?? []);
    return given.length === 0 ? null : Math.min(...given);
  };
  const [sendMbps, receiveMbps] = [lowest((spec) => spec.sendMbps), lowest((spec) => spec.receiveMbps)];
  return sendMbps === null && receiveMbps === null ? null : { sendMbps, receiveMbps };
}

export const bytesPerSecond = (mbps: number): number => (mbps * 1_000_000) / 8;
