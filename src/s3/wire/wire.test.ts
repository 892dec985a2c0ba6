import assert from "node:assert/strict";
import { test } from "node:test";
import { CHECKSUM_NAMES, compositeOf, createChecksum } from "../checksums/checksums.ts";
import { pathOfKey } from "../files/keys.ts";
import { rangeOf } from "./byte-range.ts";
import { readRequest } from "./s3-request.ts";
import { readXml } from "./xml-reader.ts";
import { xmlDocument } from "./xml-writer.ts";

test("checksums have the check values of their definitions, whatever the pieces", () => {
  const known = {
    CRC32: "cbf43926",
    CRC32C: "e3069283",
    CRC64NVME: "ae8b14860a799888",
    SHA1: "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
    SHA256: "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
  };
  const long = Buffer.from(Array.from({ length: 1000 }, (_, index) => (index * 7) & 0xff));
  for (const name of CHECKSUM_NAMES) {
    const sum = createChecksum(name);
    sum.update(Buffer.from("123456789"));
    assert.equal(sum.digest().toString("hex"), known[name], name);
    const [whole, pieces] = [createChecksum(name), createChecksum(name)];
    whole.update(long);
    for (const at of [0, 3, 14, 500, 501])
      pieces.update(long.subarray(at, { 0: 3, 3: 14, 14: 500, 500: 501, 501: 1000 }[at]));
    assert.deepEqual(whole.digest(), pieces.digest(), name);
  }
  assert.match(compositeOf("CRC32", ["y/Q5Jg==", "y/Q5Jg=="]), /^[\w+/]{6}==-2$/);
});

test("a key is a path, or is refused with the code that clients know", () => {
  assert.deepEqual(pathOfKey("a/b c/ä"), { key: "a/b c/ä", parents: ["a", "b c"], name: "ä", isFolder: false });
  assert.deepEqual(pathOfKey("a/b/"), { key: "a/b/", parents: ["a"], name: "b", isFolder: true });
  assert.equal(pathOfKey("...").name, "...");
  const cases: [string, string][] = [
    ["", "InvalidArgument"],
    ["/", "InvalidArgument"],
    ["/a", "InvalidArgument"],
    ["a//b", "InvalidArgument"],
    ["a//", "InvalidArgument"],
    ["..", "InvalidArgument"],
    ["a/../b", "InvalidArgument"],
    ["a/./b", "InvalidArgument"],
    ["./a", "InvalidArgument"],
    ["a/../", "InvalidArgument"],
    ["a\0b", "InvalidArgument"],
    ["ä".repeat(128), "KeyTooLongError"],
    [`${"a/".repeat(512)}b`, "KeyTooLongError"],
  ];
  for (const [key, code] of cases) assert.throws(() => pathOfKey(key), { code }, JSON.stringify(key.slice(0, 20)));
});

test("ranges of bytes", () => {
  const cases: [string | undefined, [number, number] | null][] = [
    [undefined, null],
    ["bytes=0-0", [0, 0]],
    ["bytes=2-", [2, 9]],
    ["bytes=-3", [7, 9]],
    ["bytes=-30", [0, 9]],
    ["bytes=5-99", [5, 9]],
    ["bytes=0-1,4-5", null],
    ["bytes=5-2", null],
    ["lines=1-2", null],
  ];
  for (const [header, expected] of cases) {
    const range = rangeOf(header, 10);
    assert.deepEqual(range && [range.start, range.end], expected, header);
  }
  for (const header of ["bytes=10-", "bytes=-0", "bytes=99-100"])
    assert.throws(() => rangeOf(header, 10), { code: "InvalidRange" }, header);
});

test("a bucket stands in the path or before the host", () => {
  const of = (url: string, host: string) => {
    const { bucket, key } = readRequest({ method: "GET", url, rawHeaders: ["Host", host] }, ["s3.example.com"]);
    return [bucket, key];
  };
  assert.deepEqual(of("/files/a%20b/c+d", "s3.example.com"), ["files", "a b/c+d"]);
  assert.deepEqual(of("/a/b", "files.s3.example.com:9000"), ["files", "a/b"]);
  assert.deepEqual(of("/", "s3.example.com"), ["", ""]);
  assert.deepEqual(of("/files", "127.0.0.1:9000"), ["files", ""]);
  assert.deepEqual(of("/files//../x", "other"), ["files", "/../x"]);
});

test("XML is written so that every key survives, and read without surprises", () => {
  const key = "a<b>&\"'\u0001\t\r\n ]]> ü";
  const written = xmlDocument(["Key", key]);
  assert.ok(written.includes("&#1;&#9;&#13;&#10;"));
  assert.equal(readXml(xmlDocument(["Delete", [["Key", "x < y"]]])).children[0]?.text, "x < y");
  assert.equal(readXml("<a xmlns='urn:x'><!-- c --><s3:b q=\"1\"/>t&#x41;&#66;&amp;</a>").text, "tAB&");
  const bad = [
    "",
    "<a>",
    "<a></b>",
    "<a/><b/>",
    "text",
    "<a>&unknown;</a>",
    "<a>&</a>",
    '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
    "<a><![CDATA[x]]></a>",
    "<?php ?><a/>",
    "<a>".repeat(100) + "</a>".repeat(100),
    "<a>&#0;</a>",
    `<a>${"<b/>".repeat(100_000)}</a>`,
    "<a>&#x110000;</a>",
  ];
  for (const document of bad) assert.throws(() => readXml(document), { code: "MalformedXML" }, document.slice(0, 30));
});
