/** Blobs: reading one whole or in part, and uploads in one request or several. */
import { REGISTRY_AGENT } from "../../contract/image-base.ts";
import { registryError } from "../../contract/registry-error.ts";
import { DIGEST, keepBlob, mountBlob, requireBlob } from "../../kinds/image/registry/blobs.ts";
import { ownPlace, parseRepository, readablePlace } from "../../kinds/image/registry/place.ts";
import type { DoorAnswer, DoorRoute, Visit } from "./visit.ts";

const WITHOUT_BASE =
  "This image is built on the platform's own base image, which is not part of it: only servers of this platform run it. " +
  "Build it FROM debian (`berth image catalogue debian`) or another image of a registry to run it elsewhere.";

export const blobRoutes: readonly DoorRoute[] = [
  { method: "GET", path: /^blobs\/([^/]+:[^/]+)$/, action: "pull", handle: readBlob },
  { method: "POST", path: /^blobs\/uploads\/?$/, action: "push", handle: beginUpload },
  { method: "GET", path: /^blobs\/uploads\/([^/]+)$/, action: "push", handle: tellUpload },
  { method: "PATCH", path: /^blobs\/uploads\/([^/]+)$/, action: "push", handle: takePart },
  { method: "PUT", path: /^blobs\/uploads\/([^/]+)$/, action: "push", handle: finishUpload },
  { method: "DELETE", path: /^blobs\/uploads\/([^/]+)$/, action: "push", handle: cancelUpload },
];

async function readBlob({ request, name, rest: digest, deps }: Visit): Promise<DoorAnswer> {
  const [reader, place] = [await ownPlace(name, deps), await readablePlace(name, deps)];
  const isHead = request.method === "HEAD";
  const { sizeBytes, open, lacksBase } = await requireBlob(reader, place, digest, deps.here, isHead);
  if (lacksBase && request.headers["user-agent"] !== REGISTRY_AGENT)
    throw registryError("forbidden", "DENIED", WITHOUT_BASE);
  const range = rangeOf(request.headers.range, sizeBytes);
  if (range === "beyond")
    throw registryError("range_not_satisfiable", "RANGE_INVALID", `The blob has ${sizeBytes} bytes.`, {
      headers: { "content-range": `bytes */${sizeBytes}` },
    });
  const { start, end } = range ?? { start: 0, end: sizeBytes - 1 };
  return {
    status: range ? 206 : 200,
    headers: {
      "content-type": "application/octet-stream",
      "content-length": end - start + 1,
      "docker-content-digest": digest,
      "accept-ranges": "bytes",
      "cache-control": "private, max-age=31536000",
      etag: `"${digest}"`,
      ...(range ? { "content-range": `bytes ${start}-${end}/${sizeBytes}` } : {}),
    },
    body: async () => (sizeBytes === 0 ? Buffer.alloc(0) : open(range ?? undefined)),
  };
}

/** One range; several, and other units, are answered with everything. */
function rangeOf(header: string | undefined, size: number): { start: number; end: number } | "beyond" | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return null;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return start > end ? "beyond" : { start, end };
}

/** A blob that the caller may read elsewhere is mounted; one that comes with the request is taken. */
async function beginUpload(visit: Visit): Promise<DoorAnswer> {
  const { request, query, repository, deps } = visit;
  const place = await ownPlace(visit.name, deps);
  const [mount, from, digest] = [query.get("mount"), query.get("from"), query.get("digest")];
  if (mount !== null && from !== null && (await visit.may(from, "pull"))) {
    const source = await readablePlace(parseRepository(from), deps);
    if (await mountBlob(place, source, mount, deps.here)) return created(repository, mount);
  }
  const id = await deps.here.blobUploads.begin(place.key);
  if (digest !== null) return finish(visit, id, digest);
  request.raw.resume();
  return { status: 202, headers: { ...progress(repository, id, 0), "content-length": 0 } };
}

async function tellUpload({ name, repository, rest: id, deps }: Visit): Promise<DoorAnswer> {
  const { key } = await ownPlace(name, deps);
  return { status: 204, headers: progress(repository, id, deps.here.blobUploads.bytesOf(id, key)) };
}

async function takePart({ request, name, repository, rest: id, deps }: Visit): Promise<DoorAnswer> {
  const { key } = await ownPlace(name, deps);
  const bytes = await deps.here.blobUploads.part(id, key, partOf(request));
  return { status: 202, headers: { ...progress(repository, id, bytes), "content-length": 0 } };
}

function finishUpload(visit: Visit): Promise<DoorAnswer> {
  return finish(visit, visit.rest, visit.query.get("digest") ?? "");
}

async function cancelUpload({ name, rest: id, deps }: Visit): Promise<DoorAnswer> {
  const { key } = await ownPlace(name, deps);
  await deps.here.blobUploads.cancel(id, key);
  return { status: 204, headers: {} };
}

async function finish({ request, name, repository, deps }: Visit, id: string, digest: string): Promise<DoorAnswer> {
  if (!DIGEST.test(digest))
    throw registryError("bad_request", "DIGEST_INVALID", "The digest has to be sha256: and 64 hexadecimal digits.");
  const place = await ownPlace(name, deps);
  const sizeBytes = await deps.here.blobUploads.finish(id, place.key, digest, partOf(request));
  await keepBlob(place, { digest, sizeBytes }, deps);
  return created(repository, digest);
}

const created = (repository: string, digest: string): DoorAnswer => ({
  status: 201,
  headers: { location: `/v2/${repository}/blobs/${digest}`, "docker-content-digest": digest, "content-length": 0 },
});

const progress = (repository: string, id: string, bytes: number): Record<string, string> => ({
  location: `/v2/${repository}/blobs/uploads/${id}`,
  range: `0-${Math.max(0, bytes - 1)}`,
  "docker-upload-uuid": id,
});

/** `Content-Range` of a part is `0-1023`. */
function partOf({ raw, headers }: Visit["request"]) {
  const [, from] = /^(?:bytes )?(\d+)-\d+/.exec(headers["content-range"] ?? "") ?? [];
  const length = headers["content-length"];
  return { content: raw, ...(from ? { from: Number(from) } : {}), ...(length ? { length: Number(length) } : {}) };
}
