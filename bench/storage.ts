/**
 * What storage costs, each with a reference of the same run: objects through the S3 door against MinIO and the bare
 * disk, the file API of a sandbox against a bare stream over two hops, pages of a long list, a drive of another node
 * against the folder itself, snapshots of a volume. Needs Linux; root for volumes of a size and drives of other nodes.
 * MinIO: `go install github.com/minio/minio@latest`.
 *
 *   npm run bench -- storage [--only=objects|files|lists|remote|snapshots] [--minio=PATH] [--objects=100000]
 *                            [--volume-mb=1024] [--rounds=5] [--seconds=5]
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { startBenchPlatform } from "./sandbox-parts/platform.ts";
import { type BucketKeys, openBucket } from "./storage-parts/bucket.ts";
import { lists } from "./storage-parts/lists.ts";
import { startMinio } from "./storage-parts/minio.ts";
import { objects } from "./storage-parts/objects.ts";
import { remoteDrive } from "./storage-parts/remote.ts";
import { snapshots } from "./storage-parts/snapshots.ts";
import { fileApi } from "./storage-parts/two-hops.ts";

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string): string | undefined => flags.find((each) => each.startsWith(`--${name}=`))?.split("=")[1];
  const number = (name: string, otherwise: number): number => Number(flag(name) ?? otherwise);
  const wants = (part: string): boolean => [undefined, part].includes(flag("only"));
  const load = (): string => loadavg()[0]?.toFixed(1) ?? "?";
  console.log(`load of the machine at the start: ${load()}`);
  const rounds = number("rounds", 5);
  const dir = mkdtempSync(join(tmpdir(), "bench-storage-"));
  const platform = await startBenchPlatform({ BERTH_S3_PORT: "0", BERTH_POOL_SIZE: "1" });
  try {
    const drive = (await platform.ask("POST", "/v0/drives", { metadata: { name: "bench" }, spec: {} })) as {
      metadata: { uid: string };
    };
    const door = openBucket((await platform.ask("POST", "/v0/drives/bench/s3-credentials", {})) as BucketKeys);
    if (wants("objects")) {
      await using minio = await startMinio(join(dir, "minio"), flag("minio") ?? "minio");
      const servers = { "S3 door": door, ...(minio === null ? {} : { MinIO: minio }) };
      await objects(servers, join(dir, "disk"), { rounds, seconds: number("seconds", 5) });
    }
    if (wants("files")) await fileApi(platform, dir, rounds);
    if (wants("lists")) {
      await door.ask("PUT", "first", { body: Buffer.from("x") });
      const files = join(platform.dataDir, "runtime/drives", drive.metadata.uid);
      mkdirSync(join(files, "list"));
      await lists(door, files, number("objects", 100_000));
    }
    if (wants("remote")) await remoteDrive(rounds);
    if (wants("snapshots")) await snapshots(platform, dir, number("volume-mb", 1024));
    await door.close();
  } finally {
    await platform.stop();
    rmSync(dir, { recursive: true, force: true });
  }
  console.log(`\nload of the machine at the end: ${load()}`);
}
