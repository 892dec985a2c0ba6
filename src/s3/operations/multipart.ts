/** Objects in parts: create, upload or copy a part, complete, abort, and the two lists. */
import { createHash } from "node:crypto";
import { type Answer, allowedPath, type S3Call } from "../call.ts";
import {
  type Checksum,
  type ChecksumName,
  type ChecksumType,
  checksumNamed,
  compositeOf,
  headerOf,
  memberOf,
} from "../checksums/checksums.ts";
import type { Part, Upload } from "../files/part-uploads.ts";
import type { ObjectRecord } from "../files/records.ts";
import type { Written } from "../files/staged-file.ts";
import { encoded } from "../signature/canonical.ts";
import { rangeOf } from "../wire/byte-range.ts";
import { readOutcome, writeCondition } from "../wire/conditions.ts";
import { describedBy, requireSupported } from "../wire/object-headers.ts";
import { textOf as textOfPayload } from "../wire/payload.ts";
import { S3Error } from "../wire/s3-error.ts";
import { childrenOf, readXml, textOf } from "../wire/xml-reader.ts";
import { elements } from "../wire/xml-writer.ts";
import { copySource } from "./copy-source.ts";
import { sumsOf } from "./writes.ts";

const PARTS_MAX = 10_000;
const PAGE_MAX = 1000;
/** The list of 10,000 parts with a checksum each. */
const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;

export async function createMultipartUpload({ request, objects, access, bucket }: S3Call): Promise<Answer> {
  const { key, isFolder } = allowedPath(request.key, access);
  requireSupported(request);
  if (isFolder)
    throw new S3Error("InvalidArgument", "A key with a slash at its end is a folder, and is not sent in parts.");
  const checksum = wishedChecksum(request.header("x-amz-checksum-algorithm"), request.header("x-amz-checksum-type"));
  const upload = await objects.uploads.begin({
    key,
    checksum,
    described: describedBy(request),
  });
  return {
    headers: checksum ? { "x-amz-checksum-algorithm": checksum.name, "x-amz-checksum-type": checksum.type } : {},
    xml: ["InitiateMultipartUploadResult", elements({ Bucket: bucket.name, Key: key, UploadId: upload.id })],
  };
}

function wishedChecksum(algorithm: string | undefined, type: string | undefined): Upload["checksum"] {
  if (algorithm === undefined) return null;
  const name = checksumNamed(algorithm);
  const isHash = name.startsWith("SHA");
  const chosen = type ?? (name === "CRC64NVME" ? "FULL_OBJECT" : "COMPOSITE");
  if (!isType(chosen) || (isHash && chosen === "FULL_OBJECT") || (name === "CRC64NVME" && chosen === "COMPOSITE"))
    throw new S3Error("InvalidRequest", `The ${chosen} checksum type cannot be used with the ${name} algorithm.`);
  return { name, type: chosen };
}

const isType = (text: string): text is ChecksumType => text === "FULL_OBJECT" || text === "COMPOSITE";

export async function uploadPart(call: S3Call): Promise<Answer> {
  const { objects, payload } = call;
  const { upload, number } = await partOf(call);
  const sent = payload();
  await using staged = await objects.stagePart(upload, sent.bytes);
  const names = [...new Set([...sent.checksums, ...(upload.checksum ? [upload.checksum.name] : [])])];
  const written = await staged.write(sent.source, names);
  sent.requireSame(written);
  const part = partFrom(written, number, names[0], call);
  await objects.uploads.add(upload, staged, part);
  return { headers: { etag: `"${part.etag}"`, ...partChecksum(part) } };
}

export async function uploadPartCopy(call: S3Call): Promise<Answer> {
  const { request, objects } = call;
  const { upload, number } = await partOf(call);
  const source = await copySource(request, call);
  await using _opened = source;
  if (readOutcome(request.header, source.object, "x-amz-copy-source-") === "not-modified")
    throw new S3Error("PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
  const asked = request.header("x-amz-copy-source-range");
  const range = rangeOf(asked, source.object.bytes);
  if (asked !== undefined && !range)
    throw new S3Error("InvalidArgument", "x-amz-copy-source-range has to be bytes=FIRST-LAST.");
  await using staged = await objects.stagePart(upload, range ? range.end - range.start + 1 : source.object.bytes);
  const name = upload.checksum?.name;
  const written = await staged.write(source.bytes(range ?? undefined), name ? [name] : []);
  const part = partFrom(written, number, name, call);
  await objects.uploads.add(upload, staged, part);
  return {
    xml: [
      "CopyPartResult",
      elements({ LastModified: iso(part.modifiedMs), ETag: `"${part.etag}"`, ...checksumMember(part) }),
    ],
  };
}

export async function completeMultipartUpload(call: S3Call): Promise<Answer> {
  const { request, objects, bucket, payload } = call;
  const condition = writeCondition(request.header);
  const upload = await uploadOf(call);
  const sent = payload();
  const document = await textOfPayload(sent, DOCUMENT_BYTES_MAX, (text) =>
    // A checksum in the header is that of the object, not of this document.
    ({ ...sumsOf(text, []), checksums: sent.sent }),
  );
  const parts = chosenParts(document, await objects.uploads.parts(upload), upload);
  const wished = upload.checksum;
  await using staged = await objects.stage(0); // the parts count already
  const isFull = wished?.type === "FULL_OBJECT";
  const numbers = parts.map(({ number }) => number);
  const written = await staged.write(objects.uploads.bytes(upload, numbers), isFull ? [wished.name] : []);
  const checksum = wished && objectChecksum(wished, parts, written);
  if (checksum) requireAnnounced(checksum, sent.sent.get(checksum.name));
  const digests = Buffer.from(parts.map((part) => part.etag).join(""), "hex");
  const etag = `${createHash("md5").update(digests).digest("hex")}-${parts.length}`;
  const record: ObjectRecord = { ...upload.described, etag, checksum, parts: parts.length };
  await objects.put(upload.key, staged, { record, ...condition });
  await objects.uploads.end(upload);
  return {
    xml: [
      "CompleteMultipartUploadResult",
      elements({
        Location: `/${bucket.name}/${encoded(upload.key, "/")}`,
        Bucket: bucket.name,
        Key: upload.key,
        ETag: `"${etag}"`,
        ...(checksum && { [memberOf(checksum.name)]: checksum.value, ChecksumType: checksum.type }),
      }),
    ],
  };
}

/** Clients send the checksum of the whole object with or without the number of its parts. */
function requireAnnounced({ name, value }: Checksum, announced: string | undefined): void {
  if (announced !== undefined && ![value, value.replace(/-\d+$/, "")].includes(announced))
    throw new S3Error("BadDigest", `The ${name} you specified did not match the calculated checksum.`);
}

/** The parts that the client names, each as it was sent. */
function chosenParts(document: string, there: readonly Part[], { checksum }: Upload): Part[] {
  const root = readXml(document);
  const named = childrenOf(root, "Part");
  if (root.name !== "CompleteMultipartUpload" || named.length === 0 || named.length > PARTS_MAX)
    throw new S3Error("MalformedXML", `The document has to be a CompleteMultipartUpload with 1 to ${PARTS_MAX} parts.`);
  const byNumber = new Map(there.map((part) => [part.number, part]));
  let last = 0;
  return named.map((one) => {
    const number = Number(textOf(one, "PartNumber"));
    if (!(number > last)) throw new S3Error("InvalidPartOrder", "The list of parts was not in ascending order.");
    last = number;
    const part = byNumber.get(number);
    const etag = textOf(one, "ETag")
      ?.trim()
      .replace(/^"(.*)"$/, "$1");
    const sum = checksum && textOf(one, memberOf(checksum.name));
    if (!part || part.etag !== etag || (sum && sum !== part.checksum?.value))
      throw new S3Error(
        "InvalidPart",
        "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
        { PartNumber: String(number) },
      );
    return part;
  });
}

function objectChecksum(
  { name, type }: NonNullable<Upload["checksum"]>,
  parts: readonly Part[],
  written: Written,
): Checksum {
  const value = type === "FULL_OBJECT" ? (written.checksums.get(name) ?? "") : compositeOf(name, parts.map(sumOf));
  return { name, value, type };
}

const sumOf = ({ checksum }: Part): string => checksum?.value ?? "";

export async function abortMultipartUpload(call: S3Call): Promise<Answer> {
  await call.objects.uploads.end(await uploadOf(call));
  return { status: 204 };
}

export async function listParts(call: S3Call): Promise<Answer> {
  const { query } = call.request;
  const upload = await uploadOf(call);
  const after = numberIn(query("part-number-marker"), 0);
  const max = Math.min(numberIn(query("max-parts"), PAGE_MAX), PAGE_MAX);
  const all = (await call.objects.uploads.parts(upload)).filter(({ number }) => number > after);
  const page = all.slice(0, max);
  return {
    xml: [
      "ListPartsResult",
      [
        ...elements({
          Bucket: call.bucket.name,
          Key: upload.key,
          UploadId: upload.id,
          PartNumberMarker: after,
          NextPartNumberMarker: page.at(-1)?.number ?? 0,
          MaxParts: max,
          IsTruncated: all.length > page.length,
          StorageClass: "STANDARD",
          ChecksumAlgorithm: upload.checksum?.name,
          ChecksumType: upload.checksum?.type,
        }),
        ...page.map(
          (part) =>
            [
              "Part",
              elements({
                PartNumber: part.number,
                LastModified: iso(part.modifiedMs),
                ETag: `"${part.etag}"`,
                Size: part.bytes,
                ...checksumMember(part),
              }),
            ] as const,
        ),
      ],
    ],
  };
}

export async function listMultipartUploads({ request: { query }, objects, access, bucket }: S3Call): Promise<Answer> {
  const prefix = query("prefix") ?? "";
  const [keyMarker, idMarker] = [query("key-marker") ?? "", query("upload-id-marker") ?? ""];
  const max = Math.min(numberIn(query("max-uploads"), PAGE_MAX), PAGE_MAX);
  if (query("delimiter")) throw new S3Error("NotImplemented", "Uploads are not listed by delimiter.");
  const floor = access.floor.map((name) => `${name}/`).join("");
  const all = (await objects.uploads.list()).filter(({ key }) => key.startsWith(prefix) && key.startsWith(floor));
  const from = keyMarker === "" ? 0 : all.findIndex((one) => isPast(one, keyMarker, idMarker));
  const rest = from < 0 ? [] : all.slice(from);
  const page = rest.slice(0, max);
  const isTruncated = rest.length > page.length;
  return {
    xml: [
      "ListMultipartUploadsResult",
      [
        ...elements({
          Bucket: bucket.name,
          KeyMarker: keyMarker,
          UploadIdMarker: idMarker,
          NextKeyMarker: isTruncated ? page.at(-1)?.key : undefined,
          NextUploadIdMarker: isTruncated ? page.at(-1)?.id : undefined,
          Prefix: prefix,
          MaxUploads: max,
          IsTruncated: isTruncated,
        }),
        ...page.map(
          ({ key, id, startedMs }) =>
            [
              "Upload",
              elements({ Key: key, UploadId: id, StorageClass: "STANDARD", Initiated: iso(startedMs) }),
            ] as const,
        ),
      ],
    ],
  };
}

/** Uploads of one key follow the one that the marker names. */
function isPast({ key }: Upload, keyMarker: string, idMarker: string): boolean {
  const order = Buffer.compare(Buffer.from(key), Buffer.from(keyMarker));
  return order > 0 || (order === 0 && idMarker === "");
}

async function uploadOf({ request, objects, access }: S3Call): Promise<Upload> {
  return objects.uploads.get(request.query("uploadId") ?? "", allowedPath(request.key, access).key);
}

async function partOf(call: S3Call): Promise<{ upload: Upload; number: number }> {
  const upload = await uploadOf(call);
  const number = numberIn(call.request.query("partNumber"), 0);
  if (number < 1 || number > PARTS_MAX)
    throw new S3Error("InvalidArgument", `Part number must be an integer between 1 and ${PARTS_MAX}, inclusive`);
  return { upload, number };
}

function numberIn(text: string | undefined, absent: number): number {
  if (text === undefined || text === "") return absent;
  if (!/^\d{1,9}$/.test(text)) throw new S3Error("InvalidArgument", `'${text}' has to be a number.`);
  return Number(text);
}

function partFrom(written: Written, number: number, name: ChecksumName | undefined, { clock }: S3Call): Part {
  const value = name && written.checksums.get(name);
  return {
    ...{ number, bytes: written.bytes, etag: written.md5, modifiedMs: clock.now() },
    checksum: name && value ? { name, value, type: "FULL_OBJECT" } : null,
  };
}

const partChecksum = ({ checksum }: Part): Record<string, string> =>
  checksum ? { [headerOf(checksum.name)]: checksum.value } : {};

const checksumMember = ({ checksum }: Part): Record<string, string> =>
  checksum ? { [memberOf(checksum.name)]: checksum.value } : {};

const iso = (ms: number): string => new Date(ms).toISOString();
