/** The object that x-amz-copy-source names, open for reading. */
import type { FileHandle } from "node:fs/promises";
import { allowedPath, noSuchKey, type S3Call } from "../call.ts";
import type { StoredObject } from "../files/drive-objects.ts";
import { REQUEST_BYTES_MAX } from "../wire/payload.ts";
import { S3Error } from "../wire/s3-error.ts";
import type { S3Request } from "../wire/s3-request.ts";

export interface CopySource extends AsyncDisposable {
  object: StoredObject;
  bytes(range?: { start: number; end: number }): AsyncIterable<Buffer>;
}

const CHUNK_BYTES = 256 * 1024;

export async function copySource(
  { header }: S3Request,
  { objects, access, bucket }: Pick<S3Call, "objects" | "access" | "bucket">,
): Promise<CopySource> {
  const [path = "", versionId] = (header("x-amz-copy-source") ?? "").split("?versionId=");
  if (versionId !== undefined) throw new S3Error("NotImplemented", "Drives keep no versions of objects.");
  const [from = "", key = ""] = decoded(path)
    .replace(/^\//, "")
    .split(/\/(.*)/s, 2);
  if (from !== bucket.name)
    throw new S3Error("AccessDenied", "These credentials open one drive: an object is copied within its drive.");
  const found = await objects.open(allowedPath(key, access).key);
  if (!found) throw noSuchKey(key);
  const { object, handle } = found;
  return {
    object,
    bytes(range) {
      const [start, end] = [range?.start ?? 0, (range?.end ?? object.bytes - 1) + 1];
      // A file with holes costs a workload nothing, and its copy every byte.
      if (end - start > REQUEST_BYTES_MAX)
        throw new S3Error("InvalidRequest", `At most ${REQUEST_BYTES_MAX} bytes are copied at once. Copy in parts.`);
      return handle ? readBytes(handle, start, end) : none();
    },
    [Symbol.asyncDispose]: async () => handle?.close(),
  };
}

async function* readBytes(handle: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  for (let at = start; at < end; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - at)), 0, null, at);
    if (bytesRead === 0) throw new S3Error("InternalError", "The object changed while it was copied. Try again.");
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function* none(): AsyncGenerator<Buffer> {}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error("InvalidArgument", "x-amz-copy-source has to be BUCKET/KEY with percent-encoded characters.");
  }
}
