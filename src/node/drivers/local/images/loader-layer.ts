/**
 * The lowest layer of every image that was loaded: the machine's own dynamic loader and C library. The daemon needs them
 * to start, and many images are made without them (Alpine, or a single static program). An image that has its own hides
 * these.
 */
import { createHash } from "node:crypto";
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolder } from "./base-image.ts";

const ARCHITECTURES: Record<string, { loader: string; folders: string[] }> = {
  arm64: { loader: "/lib/ld-linux-aarch64.so.1", folders: ["/lib/aarch64-linux-gnu", "/lib64"] },
  x64: { loader: "/lib64/ld-linux-x86-64.so.2", folders: ["/lib/x86_64-linux-gnu", "/lib64"] },
};
/** The libraries that `ldd` lists for the daemon. */
const LIBRARIES = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"];

/** Path of the dynamic loader on this kind of machine. */
export const loaderPath = (): string => ARCHITECTURES[process.arch]?.loader ?? "";

/** Null on a machine with another C library than glibc. */
export function openLoaderLayer(parent: string): string | null {
  const loader = loaderPath();
  const { folders } = ARCHITECTURES[process.arch] ?? { folders: [] };
  if (!existsSync(loader)) return null;
  const files = LIBRARIES.flatMap(
    (name) => folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? [],
  );
  const contents = [loader, ...files].map((path) => ({ path, bytes: readFileSync(path) }));
  const hash = createHash("sha256");
  for (const { path, bytes } of contents) hash.update(path).update(bytes);
  // Never changed once it exists: workloads use it as a layer.
  const dir = join(parent, hash.digest("hex").slice(0, 16));
  if (existsSync(dir)) return dir;
  const temp = `${dir}.${process.pid}`;
  rmSync(temp, { recursive: true, force: true });
  for (const { path, bytes } of contents) {
    // In both places, for images where /lib is a link to /usr/lib.
    for (const place of [path, join("/usr", path)]) {
      makeFolder(temp, dirname(place).slice(1));
      writeFileSync(join(temp, place), bytes);
      chmodSync(join(temp, place), 0o755);
    }
  }
  renameSync(temp, dir);
  return dir;
}
