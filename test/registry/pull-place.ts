/** A machine that pulls, the registry it pulls from, and images to pull. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { parseReference } from "../../src/contract/image-reference.ts";
import { removeTree } from "../../src/lib/remove-tree.ts";
import type { Images } from "../../src/node/capabilities/images.ts";
import { Spawner } from "../../src/node/drivers/local/calls/spawner.ts";
import type { Arch } from "../../src/node/drivers/local/calls/stepper.ts";
import { LocalAssembly } from "../../src/node/drivers/local/images/assembly.ts";
import { loadImage } from "../../src/node/drivers/local/images/image-archive.ts";
import {
  type ImageStore,
  openImageStore,
  removeImage,
  resolveImage,
} from "../../src/node/drivers/local/images/images.ts";
import { type Pulled, Puller } from "../../src/node/images/puller.ts";
import { type FindCredentials, NO_CREDENTIALS } from "../../src/registry/credentials.ts";
import { PullRefused } from "../../src/registry/problem.ts";
import { createRegistries, type RegistriesOptions } from "../../src/registry/registries.ts";
import { tar } from "../image-archive.ts";
import { unpackHere } from "../unpack-here.ts";
import { type FakeRegistry, OCI, startFakeRegistry } from "./fake-registry.ts";

export const skip = process.platform === "linux" ? false : "needs Linux";

export interface Place {
  store: ImageStore;
  /** Unpackings so far. */
  unpacked(): number;
  downloads(): string[];
  puller: Puller;
  pull(name: string, credentials?: FindCredentials, workspace?: string): Promise<Pulled>;
}

export const NO_LAYERS: ReadonlySet<string> = new Set();

export async function place(
  t: TestContext,
  options: Partial<RegistriesOptions> = {},
  bytesMax = 64 * 2 ** 20,
): Promise<Place> {
  const dir = mkdtempSync(join(tmpdir(), "pull-"));
  const spawner = new Spawner(dir, process.arch as Arch);
  t.after(async () => {
    await puller.stop();
    await spawner.stop();
    await removeTree(dir);
    rmSync(dir, { recursive: true, force: true });
  });
  await spawner.open();
  const store = openImageStore({ dir: join(dir, "images"), brand: "berth", resolvConf: "" });
  let unpacked = 0;
  const unpack: typeof unpackHere = (request, rest) => {
    unpacked += 1;
    return unpackHere(request, rest);
  };
  const loader = { store, spawner, unpack, identity: { kind: "contained" } as const };
  const images: Images = {
    load: (path, name) => loadImage(loader, path, name),
    assemble: async (image, repository) => new LocalAssembly(loader, image, repository, () => NO_LAYERS),
    find: async () => null,
    bytes: async () => null,
    list: async () => [],
    remove: (name) => removeImage(store, name, NO_LAYERS),
  };
  const registries = createRegistries({
    ...{ privateAddresses: true, allowed: null, mirrors: [], plainHttp: [], credentials: NO_CREDENTIALS },
    ...options,
  });
  const downloads = join(dir, "downloads");
  const patience = { attempts: 3, firstPauseMs: 1 };
  const puller = new Puller({ dir: downloads, registries, images: async () => images, bytesMax, patience });
  return {
    store,
    puller,
    unpacked: () => unpacked,
    downloads: () => (existsSync(downloads) ? readdirSync(downloads) : []),
    pull: (name, credentials = NO_CREDENTIALS, workspace = "main") => {
      const reference = parseReference(name);
      assert.ok(reference, name);
      return puller.pull({ workspace, reference, credentials }, { signal: t.signal }, async (pulled) => pulled);
    },
  };
}

export const lowersOf = (store: ImageStore, name: string): string[] =>
  resolveImage(store, name)?.parts[0]?.lowers.filter((dir) => dir.includes("/layers/")) ?? [];

export async function registryFor(t: TestContext): Promise<FakeRegistry> {
  const registry = await startFakeRegistry();
  t.after(() => registry[Symbol.asyncDispose]());
  return registry;
}

export const bottom = tar([
  { path: "etc/kept", content: "1" },
  { path: "etc/gone", content: "2" },
  { path: "data/old", content: "3" },
  { path: "lib", type: "2", link: "/etc" },
]);
export const top = tar([
  { path: "etc/.wh.gone" },
  { path: "data/.wh..wh..opq" },
  { path: "data/new", content: "4" },
  { path: "lib/more", content: "5" },
]);
export const gzip = { mediaType: `${OCI}.layer.v1.tar+gzip`, bytes: (bytes: Buffer) => gzipSync(bytes) };
export const zstd = { mediaType: `${OCI}.layer.v1.tar+zstd`, bytes: (bytes: Buffer) => zstdCompressSync(bytes) };

/** The reason of a refusal, and its text. */
export async function refusal(work: Promise<unknown>): Promise<[string, string]> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof PullRefused, String(error));
  return [error.reason, error.message];
}
