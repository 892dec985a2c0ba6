/**
 * Every engine that this machine has, beside what people use without Berth: `docker run` and `kubectl run`. Then the
 * cost of several servers: a hop between two of them, and the start of one of three on 1,000 records.
 */
import { measureDocker } from "./engines-parts/docker.ts";
import { measureKubernetes } from "./engines-parts/kubernetes.ts";
import { measureLocal } from "./engines-parts/local.ts";
import { measurePeerHop } from "./engines-parts/peer-hop.ts";
import { measureRecords } from "./engines-parts/records.ts";
import { type Findings, isMeasured } from "./engines-parts/start.ts";
import { table } from "./measure.ts";

export async function run(): Promise<void> {
  const found: Findings[] = [];
  for (const measure of [measureLocal, measureDocker, measureKubernetes]) found.push(await measure());
  const all = found.flat();
  const measured = all.filter(isMeasured);
  const reference = (name: string | undefined) => measured.find((each) => each.name === name);
  if (measured.length > 0)
    table(
      "Create to the end of the first command, and one more command in what runs; medians and ratios of this run",
      measured.map(({ name, against, createMs, execMs }) => ({
        engine: name,
        createMs,
        execMs,
        against: against && reference(against) ? against : "-",
        create: ratio(createMs, reference(against)?.createMs),
        exec: ratio(execMs, reference(against)?.execMs),
      })),
    );
  for (const each of all) if (!isMeasured(each)) console.log(`${each.name}: not measured, ${each.reason}`);
  await measurePeerHop();
  await measureRecords();
}

const ratio = (value: number, reference: number | undefined): string =>
  reference === undefined ? "-" : `${(value / reference).toFixed(2)}x`;
