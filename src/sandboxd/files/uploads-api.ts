/** /filesystem-multipart: large files in parts, in any order and at the same time. */

import type { Daemon } from "../daemon-context.ts";
import { ApiError } from "../http/api-error.ts";
import { type Call, field, integerQuery, readJson } from "../http/call.ts";
import { isFormData, readForm } from "../http/form-data.ts";
import { sendJson } from "../http/send.ts";
import { pathFromUrl, toText } from "./byte-path.ts";
import { parsePermissions } from "./entry.ts";
import { DEFAULT_FILE_MODE } from "./file-io.ts";
import { type Part, type Upload, UploadStore } from "./upload-store.ts";

const stores = new WeakMap<Daemon, UploadStore>();

export async function initiateUpload(call: Call): Promise<void> {
  const path = pathFromUrl(call.params[0] ?? "", call.daemon.environment.pathBase);
  const body = await readJson(call);
  const permissions = parsePermissions(field(body, "permissions", "string"), DEFAULT_FILE_MODE);
  const { user } = call.daemon.environment;
  const upload = await storeOf(call).initiate(path, permissions, { mode: permissions, user });
  sendJson(call.res, 200, { uploadId: upload.uploadId, path: toText(path) });
}

/** Stores a part: the form field `file`, or the whole body when the request is no form. */
export async function putPart(call: Call): Promise<void> {
  const upload = uploadOf(call);
  if (!call.query.has("partNumber")) throw new ApiError(400, 'The query parameter "partNumber" is required.');
  const incoming = storeOf(call).beginPart(upload, integerQuery(call, "partNumber", 0));
  const source = call.req as AsyncIterable<Buffer>;
  const type = call.req.headers["content-type"];
  let found = !isFormData(type);
  try {
    if (found) for await (const chunk of source) await incoming.write(chunk);
    else {
      await readForm(source, type, (part) => {
        const wanted = part.name === "file" && !found;
        found ||= wanted;
        return { write: (chunk) => (wanted ? incoming.write(chunk) : undefined) };
      });
    }
    if (!found) throw new ApiError(400, 'The form has no part "file".');
    const { partNumber, etag, size } = await incoming.commit();
    sendJson(call.res, 200, { partNumber, etag, size });
  } finally {
    await incoming.discard();
  }
}

export async function completeUpload(call: Call): Promise<void> {
  const upload = uploadOf(call);
  const { parts } = await readJson(call);
  const { user } = call.daemon.environment;
  await storeOf(call).complete(upload, wantedParts(parts), { mode: upload.permissions, user });
  sendJson(call.res, 200, { path: toText(upload.path), message: "Multipart upload completed successfully" });
}

export async function abortUpload(call: Call): Promise<void> {
  const upload = uploadOf(call);
  await storeOf(call).abort(upload);
  sendJson(call.res, 200, { path: toText(upload.path), message: "Multipart upload aborted successfully" });
}

export function listParts(call: Call): void {
  const upload = uploadOf(call);
  sendJson(call.res, 200, { uploadId: upload.uploadId, parts: storeOf(call).parts(upload).map(partToWire) });
}

export function listUploads(call: Call): void {
  const store = storeOf(call);
  const uploads = store.list().map((upload: Upload) => ({
    uploadId: upload.uploadId,
    path: toText(upload.path),
    permissions: upload.permissions,
    initiatedAt: new Date(upload.initiatedAtMs).toISOString(),
    parts: Object.fromEntries(store.parts(upload).map((part) => [part.partNumber, partToWire(part)])),
  }));
  sendJson(call.res, 200, { uploads });
}

const partToWire = ({ partNumber, etag, size, uploadedAt }: Part): Omit<Part, "file"> => ({
  partNumber,
  etag,
  size,
  uploadedAt,
});

const uploadOf = (call: Call): Upload => storeOf(call).get(call.params[0] ?? "");

function storeOf({ daemon }: Call): UploadStore {
  const store = stores.get(daemon) ?? new UploadStore(daemon.config.stateDir);
  stores.set(daemon, store);
  return store;
}

function wantedParts(parts: unknown): { partNumber: number; etag: string }[] {
  if (!Array.isArray(parts)) throw new ApiError(400, '"parts" must be a list.');
  const wanted = parts.map((part: { partNumber?: unknown; etag?: unknown } | null) => {
    const { partNumber, etag } = part ?? {};
    if (!Number.isSafeInteger(partNumber) || typeof etag !== "string") {
      throw new ApiError(400, 'Every part needs a "partNumber" and an "etag".');
    }
    return { partNumber: Number(partNumber), etag };
  });
  if (new Set(wanted.map(({ partNumber }) => partNumber)).size !== wanted.length) {
    throw new ApiError(400, '"parts" names a part twice.');
  }
  return wanted;
}
