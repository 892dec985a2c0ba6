/** The examples of Amazon's documentation of Signature Version 4 for S3. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createChecksum } from "../checksums/checksums.ts";
import { readRequest } from "../wire/s3-request.ts";
import { EMPTY_SHA256 } from "./canonical.ts";
import { unframed } from "./chunks.ts";
import { presentedIn } from "./credentials.ts";
import { requireSignature, type Seed } from "./verify.ts";

const SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const NOW = Date.parse("2013-05-24T00:05:00Z");
const CREDENTIAL = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";

interface Sent {
  method: string;
  url: string;
  headers: Record<string, string>;
}

function seedOf({ method, url, headers }: Sent, nowMs = NOW): Seed {
  const rawHeaders = Object.entries({ Host: "examplebucket.s3.amazonaws.com", ...headers }).flat();
  const request = readRequest({ method, url, rawHeaders }, []);
  const presented = presentedIn(request.header, request.query);
  assert.ok(presented);
  return requireSignature(
    {
      ...request,
      query: request.pairs.filter(([name]) => name !== "X-Amz-Signature"),
      payloadHash: request.header("x-amz-content-sha256") ?? "UNSIGNED-PAYLOAD",
    },
    presented,
    SECRET,
    nowMs,
  );
}

const signed = (signature: string, names: string, headers: Record<string, string> = {}): Record<string, string> => ({
  "x-amz-content-sha256": EMPTY_SHA256,
  "x-amz-date": "20130524T000000Z",
  ...headers,
  Authorization: `AWS4-HMAC-SHA256 Credential=${CREDENTIAL}, SignedHeaders=${names}, Signature=${signature}`,
});

const EVERY = "host;x-amz-content-sha256;x-amz-date";
const EXAMPLES: Sent[] = [
  {
    method: "GET",
    url: "/test.txt",
    headers: signed(
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
      "host;range;x-amz-content-sha256;x-amz-date",
      { Range: "bytes=0-9" },
    ),
  },
  {
    method: "PUT",
    url: "/test%24file.text",
    headers: signed(
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
      "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      {
        Date: "Fri, 24 May 2013 00:00:00 GMT",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
        "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
      },
    ),
  },
  {
    method: "GET",
    url: "/?lifecycle",
    headers: signed("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", EVERY),
  },
  {
    method: "GET",
    url: "/?max-keys=2&prefix=J",
    headers: signed("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7", EVERY),
  },
];
const PRESIGNED: Sent = {
  method: "GET",
  url: `/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encodeURIComponent(CREDENTIAL)}&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404`,
  headers: {},
};

test("signatures in headers and in the query are those of the documentation", () => {
  for (const sent of [...EXAMPLES, PRESIGNED]) seedOf(sent);
});

test("a changed request, another clock or an unsigned header is refused with the code that clients know", () => {
  const [first] = EXAMPLES;
  assert.ok(first);
  const cases: [Sent, number, string][] = [
    [{ ...first, method: "HEAD" }, NOW, "SignatureDoesNotMatch"],
    [{ ...first, url: "/test.tx" }, NOW, "SignatureDoesNotMatch"],
    [{ ...first, url: "/test.txt?acl" }, NOW, "SignatureDoesNotMatch"],
    [{ ...first, headers: { ...first.headers, Range: "bytes=0-10" } }, NOW, "SignatureDoesNotMatch"],
    [{ ...first, headers: { ...first.headers, "x-amz-acl": "public-read" } }, NOW, "AccessDenied"],
    [first, NOW + 16 * 60_000, "RequestTimeTooSkewed"],
    [first, NOW - 30 * 60_000, "RequestTimeTooSkewed"],
    [PRESIGNED, NOW + 86_400_000, "AccessDenied"],
    [{ ...PRESIGNED, url: PRESIGNED.url.replace("86400", "604801") }, NOW, "AuthorizationQueryParametersError"],
    [{ ...PRESIGNED, url: PRESIGNED.url.replace("=host&", "=date&") }, NOW, "AuthorizationQueryParametersError"],
    [{ ...PRESIGNED, url: PRESIGNED.url.replace("86400", "86399") }, NOW, "SignatureDoesNotMatch"],
    [{ ...PRESIGNED, headers: { "x-amz-meta-a": "b" } }, NOW, "AccessDenied"],
    [{ ...first, headers: { ...first.headers, Authorization: "AWS a:b" } }, NOW, "InvalidRequest"],
    [{ ...PRESIGNED, url: "/test.txt?AWSAccessKeyId=a&Signature=b&Expires=1" }, NOW, "InvalidRequest"],
    [{ ...first, url: "/%ff" }, NOW, "InvalidURI"],
  ];
  for (const [sent, nowMs, code] of cases)
    assert.throws(() => seedOf(sent, nowMs), { code }, `${sent.method} ${sent.url} ${nowMs - NOW}`);
});

const STREAMED = {
  Host: "s3.amazonaws.com",
  "x-amz-storage-class": "REDUCED_REDUNDANCY",
  "Content-Encoding": "aws-chunked",
  "x-amz-decoded-content-length": "66560",
};
const A = "a".repeat(65_536);
const framed = (text: string, signature: string): string =>
  `${text.length.toString(16)};chunk-signature=${signature}\r\n${text}${text === "" ? "" : "\r\n"}`;

/** The body arrives in pieces of a size that fits no frame. */
async function* pieces(text: string): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 1009) yield bytes.subarray(at, at + 1009);
}

async function read(body: string, seed: Seed | null, hasTrailers: boolean) {
  const trailers: Record<string, string> = {};
  const onTrailer = (name: string, value: string): void => {
    trailers[name] = value;
  };
  const parts: Buffer[] = [];
  for await (const part of unframed(pieces(body), { seed, hasTrailers, onTrailer })) parts.push(part);
  return { data: Buffer.concat(parts).toString(), trailers };
}

test("signed chunks", async () => {
  const seed = seedOf({
    method: "PUT",
    url: "/examplebucket/chunkObject.txt",
    headers: signed(
      "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
      "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class",
      { ...STREAMED, "Content-Length": "66824", "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" },
    ),
  });
  const body = [
    framed(A, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
    framed(A.slice(0, 1024), "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
    framed("", "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
    "\r\n",
  ];
  assert.equal((await read(body.join(""), seed, false)).data.length, 66_560);
  await assert.rejects(read(body.join("").replace("aaa", "aab"), seed, false), { code: "SignatureDoesNotMatch" });
  await assert.rejects(read([body[1], body[0], body[2], body[3]].join(""), seed, false), {
    code: "SignatureDoesNotMatch",
  });
  for (const cut of [10, 40_000, body.join("").length - 3])
    await assert.rejects(read(body.join("").slice(0, cut), seed, false), { code: "IncompleteBody" });
  await assert.rejects(read(body.join("").replace(/;chunk-signature=\w+/, ""), seed, false), {
    code: "IncompleteBody",
  });
});

test("signed chunks with a signed trailer", async () => {
  const seed = seedOf({
    method: "PUT",
    url: "/examplebucket/chunkObject.txt",
    headers: signed(
      "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
      "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer",
      {
        ...STREAMED,
        "x-amz-trailer": "x-amz-checksum-crc32c",
        "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
      },
    ),
  });
  const body = [
    framed(A, "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2"),
    framed(A.slice(0, 1024), "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"),
    framed("", "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"),
    "x-amz-checksum-crc32c:sOO8/Q==\r\n",
    "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n",
  ].join("");
  const { data, trailers } = await read(body, seed, true);
  assert.deepEqual(trailers, { "x-amz-checksum-crc32c": "sOO8/Q==" });
  const sum = createChecksum("CRC32C");
  sum.update(Buffer.from(data));
  assert.equal(sum.digest().toString("base64"), "sOO8/Q==");
  await assert.rejects(read(body.replace("sOO8", "sOO9"), seed, true), { code: "SignatureDoesNotMatch" });
});

test("chunks without signatures, with a trailer", async () => {
  const { data, trailers } = await read("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", null, true);
  assert.deepEqual([data, trailers], ["hello", { "x-amz-checksum-crc32": "NhCmhg==" }]);
  for (const body of [
    "5\r\nhelloX\r\n0\r\n\r\n",
    "-5\r\nhello",
    "zz\r\n",
    `${"0".repeat(5000)}`,
    "5\r\nhello\r\n0\r\nnot a trailer\r\n\r\n",
  ])
    await assert.rejects(read(body, null, true), { code: "IncompleteBody" }, body.slice(0, 20));
});
