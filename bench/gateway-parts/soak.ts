/**
 * Memory must not grow: the median of each sixth of the time, under constant load, while routes change all the time.
 * What the process holds on to is told apart from what its collector has not given back: its heap after a collection,
 * before and after.
 */
import { table } from "../measure.ts";
import { shoot } from "./load.ts";
import { CHURN_MS, middle, rssMb, type Subject } from "./subject.ts";

const WARM_UP_MS = 10_000;
const CONNECTIONS = 32;
const SAMPLE_MS = 500;

export async function soak(subject: Subject, seconds: number, request: Buffer): Promise<void> {
  const { port } = subject;
  subject.churn?.(true);
  await shoot({ port, request, connections: CONNECTIONS, durationMs: WARM_UP_MS });
  const before = await subject.heapMb?.();
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(rssMb(subject)), SAMPLE_MS);
  const load = await shoot({ port, request, connections: CONNECTIONS, durationMs: seconds * 1000 });
  clearInterval(timer);
  subject.churn?.(false);
  const after = await subject.heapMb?.();
  const size = Math.floor(samples.length / 6);
  const sixths = Array.from({ length: 6 }, (_, at) => middle(samples.slice(at * size, (at + 1) * size)));
  table(`Soak, ${seconds} s, ${load.count} requests, a route changed every ${CHURN_MS} ms`, [
    {
      ...Object.fromEntries(sixths.map((value, at) => [`RSS MB, sixth ${at + 1}`, value])),
      "live heap MB, before": before ?? "-",
      after: after ?? "-",
    },
  ]);
}
