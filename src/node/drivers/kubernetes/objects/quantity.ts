/** Amounts as Kubernetes writes them: "500m", "256Mi", "268435456". */

const FACTORS: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** NaN for a text that is no amount. */
export function amountOf(text: string): number {
  const match = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([numkKMGTPE]?i?)$/.exec(text);
  return match ? Number(match[1]) * (FACTORS[match[2] ?? ""] ?? Number.NaN) : Number.NaN;
}

/** Thousandths of a processor. */
export const cpuText = (cpus: number): string => `${Math.max(1, Math.round(cpus * 1000))}m`;
export const memoryText = (memoryMb: number): string => String(Math.round(memoryMb * 2 ** 20));
