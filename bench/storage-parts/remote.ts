/** A drive of another node against the folder itself. Both nodes are this machine, with one socket and no TLS between. */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fuseMissing, openDriveOwner } from "../../test/drivefs/mounted.ts";
import { percentiles, table } from "../measure.ts";

const SMALL = Buffer.alloc(1024, 1);
const LARGE = Buffer.alloc(100 * 2 ** 20, 1);
const SMALL_COUNT = 300;

export async function remoteDrive(rounds: number): Promise<void> {
  if (fuseMissing) return console.log(`drives of another node: skipped; ${fuseMissing}`);
  await using owner = await openDriveOwner();
  const places = { here: join(owner.files, "here"), "from afar": join(await owner.mount(), "afar") };
  const times = new Map<string, number[]>();
  const time = (name: string, count: number, work: (n: number) => void): void => {
    const at = performance.now();
    for (let n = 0; n < count; n++) work(n);
    times.set(name, [...(times.get(name) ?? []), (performance.now() - at) / count]);
  };
  for (let round = 0; round <= rounds; round++) {
    if (round === 1) times.clear(); // the first one is to warm up
    for (const [place, dir] of Object.entries(places)) {
      mkdirSync(dir);
      const file = (n: number): string => join(dir, String(n));
      time(`make 1 KB: ${place}`, SMALL_COUNT, (n) => writeFileSync(file(n), SMALL));
      time(`stat: ${place}`, SMALL_COUNT, (n) => statSync(file(n)));
      time(`read 1 KB: ${place}`, SMALL_COUNT, (n) => readFileSync(file(n)));
      time(`write 100 MB: ${place}`, 1, () => writeFileSync(join(dir, "large"), LARGE));
      time(`read 100 MB: ${place}`, 1, () => readFileSync(join(dir, "large")));
      rmSync(dir, { recursive: true });
    }
  }
  const p50 = (name: string): number => percentiles(times.get(name) ?? []).p50Ms;
  table(
    "a drive of another node, one program (ms each)",
    ["make 1 KB", "stat", "read 1 KB", "write 100 MB", "read 100 MB"].map((what) => {
      const [here, afar] = [p50(`${what}: here`), p50(`${what}: from afar`)];
      return { what, here, "from afar": afar, ratio: afar / here };
    }),
  );
}
