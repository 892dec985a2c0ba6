/** Objects of 1 KB and of 100 MB: the S3 door, a real S3 server and the bare disk, in turns. */
import { closeSync, fsyncSync, mkdirSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { load, percentiles, table } from "../measure.ts";
import type { Bucket } from "./bucket.ts";

const CLIENTS = 16;
const SMALL = Buffer.alloc(1024, 1);
const LARGE = Buffer.alloc(100 * 2 ** 20, 1);
const MB = 2 ** 20;

export async function objects(
  servers: Record<string, Bucket>,
  dir: string,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<void> {
  mkdirSync(dir, { recursive: true });
  await small(servers, seconds);
  await large(servers, dir, rounds);
}

async function small(servers: Record<string, Bucket>, seconds: number): Promise<void> {
  for (const bucket of Object.values(servers))
    await load(CLIENTS, 1000, async (n) => void (await bucket.ask("PUT", `warm/${n}`, { body: SMALL })));
  const rows: Record<string, string | number>[] = [];
  for (const what of ["put", "get"]) {
    let first = 0;
    for (const [name, bucket] of Object.entries(servers)) {
      const count = 1000;
      if (what === "get") for (let n = 0; n < count; n++) await bucket.ask("PUT", `small/${n}`, { body: SMALL });
      const result = await load(CLIENTS, seconds * 1000, async (n) => {
        if (what === "put") await bucket.ask("PUT", `put/${n % 100}/${n}`, { body: SMALL });
        else await bucket.ask("GET", `small/${n % count}`);
      });
      first ||= result.perSecond;
      const { perSecond, p50Ms, p99Ms } = result;
      rows.push({
        what: `${what} 1 KB`,
        server: name,
        "per second": perSecond,
        p50: p50Ms,
        p99: p99Ms,
        "first / this": first / perSecond,
      });
    }
  }
  table(`objects of 1 KB, ${CLIENTS} clients (ms)`, rows);
}

async function large(servers: Record<string, Bucket>, dir: string, rounds: number): Promise<void> {
  const times = new Map<string, number[]>();
  const time = async (name: string, work: () => unknown): Promise<void> => {
    const at = performance.now();
    await work();
    times.set(name, [...(times.get(name) ?? []), performance.now() - at]);
  };
  // Interleaved: whatever else the machine does meets all of them alike.
  for (let round = 0; round < rounds; round++) {
    await time("write: disk, fsync", () => written(join(dir, "bare")));
    for (const [name, bucket] of Object.entries(servers))
      await time(`write: ${name}`, () => bucket.ask("PUT", "large", { body: LARGE }));
    await time("read: disk (page cache)", () => read(join(dir, "bare")));
    for (const [name, bucket] of Object.entries(servers)) await time(`read: ${name}`, () => bucket.drain("large"));
  }
  const floors = new Map<string, number>();
  const rows = [...times].map(([name, values]) => {
    const { p50Ms } = percentiles(values);
    const kind = name.split(":")[0] ?? "";
    if (!floors.has(kind)) floors.set(kind, p50Ms);
    return {
      name,
      ms: p50Ms,
      "MB/s": (LARGE.length / MB / p50Ms) * 1000,
      "of the disk": (floors.get(kind) ?? 0) / p50Ms,
    };
  });
  table("one object of 100 MB, one client", rows);
}

function written(path: string): void {
  const fd = openSync(path, "w");
  for (let at = 0; at < LARGE.length; at += MB) writeSync(fd, LARGE, at, MB);
  fsyncSync(fd);
  closeSync(fd);
}

function read(path: string): void {
  const fd = openSync(path, "r");
  const chunk = Buffer.alloc(MB);
  while (readSync(fd, chunk) > 0);
  closeSync(fd);
}
