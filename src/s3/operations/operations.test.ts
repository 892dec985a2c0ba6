import assert from "node:assert/strict";
import { test } from "node:test";
import { readRequest } from "../wire/s3-request.ts";
import { operationOf } from "./index.ts";
import { putObject } from "./writes.ts";

const asked = (query: string) =>
  operationOf(readRequest({ method: "PUT", url: `/bucket/key?${query}`, rawHeaders: ["Host", "h"] }, []));

test("a presigned address with a header that would be lost is refused; signatures and checksums are no such header", () => {
  assert.equal(asked("X-Amz-Signature=a&X-Amz-Security-Token=b&x-amz-checksum-crc32=c&x-id=PutObject").run, putObject);
  for (const lost of ["x-amz-copy-source=other/key", "x-amz-meta-a=b", "X-Amz-Tagging=a%3Db"])
    assert.throws(() => asked(`X-Amz-Signature=a&${lost}`), { code: "NotImplemented" }, lost);
});
