/** GetObject, HeadObject, and the tags of an object. */
import { type Answer, allowedPath, noSuchKey, type S3Call } from "../call.ts";
import type { StoredObject } from "../files/drive-objects.ts";
import { rangeOf } from "../wire/byte-range.ts";
import { readOutcome } from "../wire/conditions.ts";
import { headersOf } from "../wire/object-headers.ts";
import { S3Error } from "../wire/s3-error.ts";
import { tagsAsXml } from "../wire/tags.ts";

/** Query parameters of a signed address that replace headers of the answer. */
const REPLACED = [
  "content-type",
  "content-language",
  "expires",
  "cache-control",
  "content-disposition",
  "content-encoding",
];

export async function getObject(call: S3Call): Promise<Answer> {
  const { objects, access, request } = call;
  const { key } = allowedPath(request.key, access);
  const found = await objects.open(key);
  if (!found) throw noSuchKey(key);
  const { object, handle } = found;
  try {
    const { start, bytes, ...answer } = answerFor(call, object);
    if (handle && answer.status !== 304) return { ...answer, file: { handle, start, bytes } };
    await handle?.close();
    return answer;
  } catch (error) {
    await handle?.close();
    throw error;
  }
}

export async function headObject(call: S3Call): Promise<Answer> {
  const { key } = allowedPath(call.request.key, call.access);
  const object = await call.objects.head(key);
  if (!object) throw noSuchKey(key);
  const { start: _start, bytes: _bytes, ...answer } = answerFor(call, object);
  return answer;
}

function answerFor({ request }: S3Call, object: StoredObject): Answer & { start: number; bytes: number } {
  const { header, query } = request;
  if (query("partNumber") !== undefined && query("partNumber") !== "1")
    throw new S3Error("NotImplemented", "A single part of an object cannot be read; read a range.");
  const isSame = readOutcome(header, object) === "not-modified";
  const range = rangeOf(header("range"), object.bytes);
  const withChecksum = header("x-amz-checksum-mode")?.toUpperCase() === "ENABLED" && range === null;
  const headers = { ...headersOf(object, withChecksum), ...replacedBy(query) };
  if (isSame) return { status: 304, headers, start: 0, bytes: 0 };
  const [start, bytes] = range ? [range.start, range.end - range.start + 1] : [0, object.bytes];
  const placed = range && { "content-range": `bytes ${range.start}-${range.end}/${object.bytes}` };
  return {
    status: range ? 206 : 200,
    headers: { ...headers, "content-length": String(bytes), ...placed },
    ...{ start, bytes },
  };
}

function replacedBy(query: (name: string) => string | undefined): Record<string, string> {
  const found = REPLACED.flatMap((name): [string, string][] => {
    const value = query(`response-${name}`);
    return value === undefined ? [] : [[name, value]];
  });
  const bad = found.find(([, value]) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value));
  if (bad) throw new S3Error("InvalidArgument", `The value of response-${bad[0]} cannot stand in a header.`);
  return Object.fromEntries(found);
}

export async function getObjectTagging({ request, objects, access }: S3Call): Promise<Answer> {
  const { key } = allowedPath(request.key, access);
  const object = await objects.head(key);
  if (!object) throw noSuchKey(key);
  return { xml: ["Tagging", [tagsAsXml(object.record?.tags ?? {})]] };
}
