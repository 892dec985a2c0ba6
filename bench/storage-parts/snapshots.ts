/** Snapshots of a volume: the first, and one after a hundredth of it has changed, against `cp` of a file of that size. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { table } from "../measure.ts";
import type { BenchPlatform } from "../sandbox-parts/platform.ts";

export async function snapshots(platform: BenchPlatform, dir: string, mb: number): Promise<void> {
  const timed = async (work: () => Promise<unknown> | unknown): Promise<number> => {
    const at = performance.now();
    await work();
    return performance.now() - at;
  };
  const room = Math.ceil(mb * 1.2) + 64;
  await platform.ask("POST", "/v0/volumes", { metadata: { name: "disk" }, spec: { size: room } });
  await platform.ask("POST", "/v0/sandboxes", {
    metadata: { name: "with-disk" },
    spec: { runtime: { memory: 1024 }, volumes: [{ name: "disk", mountPath: "/disk" }] },
  });
  await platform.exec("with-disk", `dd if=/dev/urandom of=/disk/data bs=1M count=${mb} status=none && sync`);
  const file = join(dir, "volume");
  execFileSync("dd", ["if=/dev/urandom", `of=${file}`, "bs=1M", `count=${mb}`, "status=none", "conv=fsync"]);
  const take = (name: string) => () => platform.ask("POST", "/v0/volumes/disk/snapshots", { name });
  const bare = await timed(() => execFileSync("cp", ["--reflink=auto", "--sparse=always", file, `${file}-copy`]));
  const first = await timed(take("first"));
  const changed = Math.max(1, Math.floor(mb / 100));
  await platform.exec(
    "with-disk",
    `dd if=/dev/urandom of=/disk/data bs=1M count=${changed} conv=notrunc status=none && sync`,
  );
  const second = await timed(take("second"));
  table(`snapshot of a volume with ${mb} MB (ms)`, [
    { what: "cp of a file of that size", ms: bare, ratio: 1 },
    { what: "first snapshot", ms: first, ratio: first / bare },
    { what: `with ${changed} MB changed`, ms: second, ratio: second / bare },
  ]);
  await platform.remove("with-disk");
}
