/**
 * A registry on loopback that holds images made by a test and may misbehave: an `intercept` sees every request first.
 * It speaks the pull half of the OCI distribution protocol.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { closeAtEnd } from "../closing.ts";

export interface FakeRegistry extends AsyncDisposable {
  /** `127.0.0.1:PORT`. */
  host: string;
  /** Documents and blobs by digest. */
  blobs: Map<string, Buffer>;
  /** `repository:tag` → digest. */
  tags: Map<string, string>;
  /** `METHOD path` of every request, in order. */
  seen: string[];
  /** Returns true when it has answered. */
  intercept: ((req: IncomingMessage, res: ServerResponse) => boolean) | null;
}

export const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

export const ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;
export const OCI = "application/vnd.oci.image";

export interface FakeImage {
  /** Uncompressed tars, lowest first. */
  layers: Buffer[];
  config?: object;
  platform?: { os: string; architecture: string };
  /** Compresses a layer; the media type says how. */
  pack?: { mediaType: string; bytes: (tar: Buffer) => Buffer };
  /** Changes the manifest before it is stored. */
  manifest?: (manifest: Record<string, unknown>) => unknown;
  /** Members of the configuration beside those of an image. */
  more?: object;
}

/** `tls`: key and certificate, to speak HTTPS. */
export async function startFakeRegistry(tls?: { key: Buffer; cert: Buffer }): Promise<FakeRegistry> {
  const server = tls ? createTlsServer(tls) : createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async (): Promise<void> => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  };
  const isClosed = closeAtEnd(close);
  const registry: FakeRegistry = {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    blobs: new Map(),
    tags: new Map(),
    seen: [],
    intercept: null,
    async [Symbol.asyncDispose]() {
      isClosed();
      await close();
    },
  };
  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
    registry.seen.push(`${req.method} ${req.url}`);
    res.on("error", () => {});
    if (!registry.intercept?.(req, res)) answer(registry, req, res);
  });
  return registry;
}

function answer({ blobs, tags }: FakeRegistry, req: IncomingMessage, res: ServerResponse): void {
  if (req.url === "/v2/") {
    res.end("{}");
    return;
  }
  const [, repository = "", kind = "", name = ""] =
    /^\/v2\/(.+)\/(manifests|blobs)\/([^/?]+)$/.exec(req.url ?? "") ?? [];
  const digest = kind === "manifests" ? (tags.get(`${repository}:${name}`) ?? name) : name;
  const bytes = blobs.get(digest);
  if (!bytes) {
    res.writeHead(404, { "content-type": "application/json" }).end('{"errors":[{"code":"NOT_FOUND"}]}');
    return;
  }
  const from = Number(/^bytes=(\d+)-$/.exec(req.headers.range ?? "")?.[1] ?? 0);
  const part = bytes.subarray(from);
  res.writeHead(from > 0 ? 206 : 200, {
    "content-length": part.length,
    "docker-content-digest": digest,
    ...(kind === "manifests" ? { "content-type": typeOf(bytes) } : {}),
    ...(from > 0 ? { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
  });
  res.end(req.method === "HEAD" ? undefined : part);
}

function typeOf(manifest: Buffer): string {
  const [, mediaType] = /^\{"schemaVersion":2,"mediaType":"([^"]+)"/.exec(manifest.toString("latin1")) ?? [];
  return mediaType ?? "application/json";
}

export const addBlob = ({ blobs }: FakeRegistry, bytes: Buffer): { digest: string; size: number } => {
  const digest = digestOf(bytes);
  blobs.set(digest, bytes);
  return { digest, size: bytes.length };
};

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** Stores an image; returns the digest of its manifest. */
export function addImage(registry: FakeRegistry, name: string | null, image: FakeImage): string {
  const { layers, config = {}, platform = { os: "linux", architecture: ARCHITECTURE } } = image;
  const pack = image.pack ?? { mediaType: `${OCI}.layer.v1.tar`, bytes: (tar: Buffer) => tar };
  const description = {
    config,
    ...platform,
    rootfs: { type: "layers", diff_ids: layers.map(digestOf) },
    ...image.more,
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: { mediaType: `${OCI}.config.v1+json`, ...addBlob(registry, json(description)) },
    layers: layers.map((tar) => ({ mediaType: pack.mediaType, ...addBlob(registry, pack.bytes(tar)) })),
  };
  const { digest } = addBlob(registry, json(image.manifest?.(manifest) ?? manifest));
  if (name !== null) registry.tags.set(name, digest);
  return digest;
}

/** An index of manifests, each for a platform. */
export function addIndex(
  registry: FakeRegistry,
  name: string,
  entries: { digest: string; platform: object }[],
): string {
  const manifests = entries.map(({ digest, platform }) => ({
    ...{ mediaType: `${OCI}.manifest.v1+json`, digest, platform },
    size: registry.blobs.get(digest)?.length ?? 0,
  }));
  const index = { schemaVersion: 2, mediaType: `${OCI}.index.v1+json`, manifests };
  const { digest } = addBlob(registry, json(index));
  registry.tags.set(name, digest);
  return digest;
}
