/** PutObject, CopyObject, DeleteObject, DeleteObjects, and changes of an object's tags. */
import { createHash } from "node:crypto";
import { type Answer, allowedPath, noSuchKey, type S3Call } from "../call.ts";
import { type Checksum, type ChecksumName, createChecksum, headerOf } from "../checksums/checksums.ts";
import { isPossibleKey } from "../files/keys.ts";
import type { ObjectRecord } from "../files/records.ts";
import type { Written } from "../files/staged-file.ts";
import { readOutcome, writeCondition } from "../wire/conditions.ts";
import { askedChecksum, describedBy, requireSupported } from "../wire/object-headers.ts";
import { textOf as textOfPayload } from "../wire/payload.ts";
import { S3Error } from "../wire/s3-error.ts";
import { tagsOfDocument, tagsOfHeader } from "../wire/tags.ts";
import { childrenOf, readXml, textOf } from "../wire/xml-reader.ts";
import { elements, type XmlElement } from "../wire/xml-writer.ts";
import { copySource } from "./copy-source.ts";

/** Bytes of a document: a thousand keys of 1,024 bytes, escaped. */
const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;
const DELETED_MAX = 1000;

export async function putObject({ request, objects, access, payload }: S3Call): Promise<Answer> {
  const path = allowedPath(request.key, access);
  requireSupported(request);
  const condition = writeCondition(request.header);
  const described = describedBy(request);
  const sent = payload();
  await using staged = await objects.stage(sent.bytes);
  const asked = askedChecksum(request);
  const names = [...new Set([...sent.checksums, ...(asked ? [asked] : [])])];
  const written = await staged.write(sent.source, names);
  sent.requireSame(written);
  const checksum = checksumOf(written, names[0]);
  const record: ObjectRecord = { ...described, etag: written.md5, checksum };
  if (path.isFolder) {
    if (written.bytes > 0)
      throw new S3Error(
        "InvalidArgument",
        "A key with a slash at its end is a folder of the drive, and has no content.",
      );
    await objects.putFolder(path.key, { record, check: condition.check });
  } else await objects.put(path.key, staged, { record, ...condition });
  return { headers: { etag: `"${record.etag}"`, ...checksumHeaders(checksum) } };
}

export async function copyObject({ request, objects, access, bucket }: S3Call): Promise<Answer> {
  const path = allowedPath(request.key, access);
  requireSupported(request);
  const condition = writeCondition(request.header);
  const source = await copySource(request, { objects, access, bucket });
  await using _handle = source;
  const { object } = source;
  if (readOutcome(request.header, object, "x-amz-copy-source-") === "not-modified")
    throw new S3Error("PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
  const isReplaced = request.header("x-amz-metadata-directive")?.toUpperCase() === "REPLACE";
  const isRetagged = request.header("x-amz-tagging-directive")?.toUpperCase() === "REPLACE";
  if (object.key === path.key && !isReplaced && !isRetagged)
    throw new S3Error("InvalidRequest", "A copy onto itself has to change metadata or tags.");
  const { headers, metadata, tags } = object.record ?? { headers: {}, metadata: {}, tags: {} };
  const described = { ...(isReplaced ? describedBy(request) : { headers, metadata }) };
  const asked = askedChecksum(request) ?? object.record?.checksum?.name;
  await using staged = await objects.stage(object.bytes);
  const written = await staged.write(source.bytes(), asked ? [asked] : []);
  const checksum = checksumOf(written, asked);
  const record: ObjectRecord = {
    ...described,
    tags: isRetagged ? tagsOfHeader(request.header("x-amz-tagging")) : tags,
    etag: written.md5,
    checksum,
  };
  const made = path.isFolder
    ? await objects.putFolder(path.key, { record, check: condition.check })
    : await objects.put(path.key, staged, { record, ...condition });
  return {
    xml: [
      "CopyObjectResult",
      elements({
        LastModified: new Date(made.modifiedMs).toISOString(),
        ETag: `"${made.etag}"`,
        ...(checksum && { [`Checksum${checksum.name}`]: checksum.value, ChecksumType: checksum.type }),
      }),
    ],
  };
}

export async function deleteObject({ request, objects, access }: S3Call): Promise<Answer> {
  const { key } = allowedPath(request.key, access);
  const isConditional = request.header("if-match") !== undefined;
  await objects.remove(key, isConditional ? writeCondition(request.header).check : undefined);
  return { status: 204 };
}

export async function deleteObjects({ objects, access, payload }: S3Call): Promise<Answer> {
  const sent = payload();
  const root = readXml(await textOfPayload(sent, DOCUMENT_BYTES_MAX, (text) => sumsOf(text, sent.checksums)));
  const wanted = childrenOf(root, "Object").map((one) => textOf(one, "Key") ?? "");
  if (root.name !== "Delete" || wanted.length === 0 || wanted.length > DELETED_MAX)
    throw new S3Error("MalformedXML", `The document has to be a Delete with 1 to ${DELETED_MAX} objects.`);
  const isQuiet = textOf(root, "Quiet")?.trim().toLowerCase() === "true";
  const results: XmlElement[] = [];
  for (const key of wanted) {
    const refusal = await removed(key, objects, access);
    if (refusal) results.push(["Error", elements({ Key: key, Code: refusal.code, Message: refusal.message })]);
    else if (!isQuiet) results.push(["Deleted", [["Key", key]]]);
  }
  return { xml: ["DeleteResult", results] };
}

async function removed(key: string, objects: S3Call["objects"], access: S3Call["access"]): Promise<S3Error | null> {
  try {
    if (!isPossibleKey(key)) return null; // there is no such object, as the client wishes
    await objects.remove(allowedPath(key, access).key);
    return null;
  } catch (error) {
    if (error instanceof S3Error) return error;
    return new S3Error("InternalError", "The object could not be removed.");
  }
}

export async function putObjectTagging({ request, objects, access, payload }: S3Call): Promise<Answer> {
  const { key } = allowedPath(request.key, access);
  const sent = payload();
  const tags = tagsOfDocument(await textOfPayload(sent, DOCUMENT_BYTES_MAX, (text) => sumsOf(text, sent.checksums)));
  if (!(await objects.amend(key, (record) => ({ ...record, tags })))) throw noSuchKey(key);
  return {};
}

export async function deleteObjectTagging({ request, objects, access }: S3Call): Promise<Answer> {
  const { key } = allowedPath(request.key, access);
  if (!(await objects.amend(key, (record) => ({ ...record, tags: {} })))) throw noSuchKey(key);
  return { status: 204 };
}

export function sumsOf(bytes: Buffer, names: readonly ChecksumName[]): Written {
  const checksums = names.map((name): [ChecksumName, string] => {
    const sum = createChecksum(name);
    sum.update(bytes);
    return [name, sum.digest().toString("base64")];
  });
  return { bytes: bytes.length, md5: createHash("md5").update(bytes).digest("hex"), checksums: new Map(checksums) };
}

const checksumOf = ({ checksums }: Written, name: ChecksumName | undefined): Checksum | null => {
  const value = name && checksums.get(name);
  return name && value ? { name, value, type: "FULL_OBJECT" } : null;
};

export const checksumHeaders = (checksum: Checksum | null): Record<string, string> =>
  checksum ? { [headerOf(checksum.name)]: checksum.value, "x-amz-checksum-type": checksum.type } : {};
