/** ListObjectsV2, ListObjects, ListBuckets. */
import type { Answer, BucketLister, S3Call } from "../call.ts";
import { type ListPage, listPage } from "../files/listing.ts";
import { encoded } from "../signature/canonical.ts";
import { S3Error } from "../wire/s3-error.ts";
import type { S3Request } from "../wire/s3-request.ts";
import { elements, type XmlElement } from "../wire/xml-writer.ts";

const PAGE_MAX = 1000;

export async function listObjectsV2(call: S3Call): Promise<Answer> {
  const { query } = call.request;
  const token = query("continuation-token");
  const startAfter = query("start-after");
  const { page, common, text } = await pageOf(call, token === undefined ? (startAfter ?? "") : keyOfToken(token));
  return {
    xml: [
      "ListBucketResult",
      [
        ...common,
        ...elements({
          KeyCount: page.entries.length,
          ContinuationToken: token,
          NextContinuationToken: page.next === null ? undefined : tokenOf(page.next),
          StartAfter: startAfter === undefined ? undefined : text(startAfter),
        }),
      ],
    ],
  };
}

export async function listObjects(call: S3Call): Promise<Answer> {
  const marker = call.request.query("marker") ?? "";
  const { page, common, text } = await pageOf(call, marker);
  const next = page.next === null ? undefined : text(page.next);
  return { xml: ["ListBucketResult", [...common, ...elements({ Marker: text(marker), NextMarker: next })]] };
}

async function pageOf({ request: { query }, objects, access, bucket, turn }: S3Call, after: string) {
  const max = maxOf(query("max-keys"));
  const [prefix, delimiter] = [query("prefix") ?? "", query("delimiter") ?? ""];
  const encoding = query("encoding-type");
  if (encoding !== undefined && encoding !== "url")
    throw new S3Error("InvalidArgument", "Invalid Encoding Method specified in Request");
  const text = (value: string): string => (encoding === "url" ? encoded(value, "/") : value);
  const page = await turn((signal) =>
    listPage(objects, { prefix, delimiter, after, max, floor: access.floor, signal }),
  );
  const isDetailed = query("list-type") !== "2" || query("fetch-owner") === "true";
  const common = [
    ...elements({
      Name: bucket.name,
      Prefix: text(prefix),
      Delimiter: delimiter === "" ? undefined : text(delimiter),
      MaxKeys: max,
      EncodingType: encoding,
      IsTruncated: page.next !== null,
    }),
    ...page.entries.map((entry) => entryAsXml(entry, text, isDetailed)),
  ];
  return { page, common, text };
}

function entryAsXml(
  entry: ListPage["entries"][number],
  text: (value: string) => string,
  isDetailed: boolean,
): XmlElement {
  if ("prefix" in entry) return ["CommonPrefixes", [["Prefix", text(entry.prefix)]]];
  const checksum = entry.record?.checksum;
  return [
    "Contents",
    elements({
      Key: text(entry.key),
      LastModified: new Date(entry.modifiedMs).toISOString(),
      ETag: `"${entry.etag}"`,
      ChecksumAlgorithm: checksum?.name,
      ChecksumType: checksum?.type,
      Size: entry.bytes,
      StorageClass: "STANDARD",
      Owner: isDetailed ? OWNER : undefined,
    }),
  ];
}

/** Drives have no owners; clients of the first list expect the member. */
const OWNER = elements({ ID: "berth", DisplayName: "berth" });

function maxOf(text: string | undefined, name = "max-keys"): number {
  if (text === undefined || text === "") return PAGE_MAX;
  if (!/^\d{1,10}$/.test(text)) throw new S3Error("InvalidArgument", `${name} has to be a number.`);
  return Math.min(Number(text), PAGE_MAX);
}

const tokenOf = (key: string): string => Buffer.from(key).toString("base64url");

function keyOfToken(token: string): string {
  const key = Buffer.from(token, "base64url").toString("utf8");
  if (token === "" || tokenOf(key) !== token) throw wrongToken();
  return key;
}

export const wrongToken = (): S3Error => new S3Error("InvalidArgument", "The continuation token provided is incorrect");

/** The answer holds one page; `prefix` chooses from it, so that a page may be empty and have a next one. */
export async function listBuckets({ query }: S3Request, buckets: BucketLister): Promise<Answer> {
  const [after, prefix] = [query("continuation-token") ?? "", query("prefix") ?? ""];
  const max = maxOf(query("max-buckets"), "max-buckets");
  if (max === 0) throw new S3Error("InvalidArgument", "max-buckets has to be at least 1.");
  const page = await buckets({ after, max });
  const each = page.buckets
    .filter(({ name }) => name.startsWith(prefix))
    .map(
      ({ name, createdMs }): XmlElement => [
        "Bucket",
        elements({ Name: name, CreationDate: new Date(createdMs).toISOString() }),
      ],
    );
  return {
    xml: [
      "ListAllMyBucketsResult",
      [
        ["Owner", OWNER],
        ["Buckets", each],
        ...elements({ ContinuationToken: page.next || undefined, Prefix: prefix || undefined }),
      ],
    ],
  };
}
