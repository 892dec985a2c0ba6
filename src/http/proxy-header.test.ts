import assert from "node:assert/strict";
import { test } from "node:test";
import { readProxyHeader } from "./proxy-header.ts";

const v2 = (command: number, family: number, rest: Buffer, length = rest.length): Buffer => {
  const start = Buffer.from("\r\n\r\n\0\r\nQUIT\n\0\0\0\0", "latin1");
  start.writeUInt8(command, 12);
  start.writeUInt8(family, 13);
  start.writeUInt16BE(length, 14);
  return Buffer.concat([start, rest]);
};
const four = Buffer.from([203, 0, 113, 7, 10, 0, 0, 1, 0xdc, 0x04, 0x01, 0xbb]);
const six = Buffer.from(`20010db8${"0".repeat(23)}1${"0".repeat(32)}dc0401bb`, "hex");

test("headers of both versions, at once and byte by byte", () => {
  const headers: [Buffer, { address: string; port: number } | null][] = [
    [Buffer.from("PROXY TCP4 203.0.113.7 10.0.0.1 56324 443\r\n"), { address: "203.0.113.7", port: 56324 }],
    [Buffer.from("PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n"), { address: "2001:db8::1", port: 56324 }],
    [Buffer.from("PROXY UNKNOWN\r\n"), null],
    [Buffer.from("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), null],
    [v2(0x21, 0x11, four), { address: "203.0.113.7", port: 56324 }],
    [v2(0x21, 0x21, six), { address: "2001:db8:0:0:0:0:0:1", port: 56324 }],
    [v2(0x21, 0x11, Buffer.concat([four, Buffer.alloc(300, 4)])), { address: "203.0.113.7", port: 56324 }],
    [v2(0x20, 0x11, four), null],
    [v2(0x21, 0x00, Buffer.alloc(0)), null],
    [v2(0x21, 0x31, Buffer.alloc(216)), null],
  ];
  for (const [bytes, client] of headers) {
    const whole = Buffer.concat([bytes, Buffer.from("GET / HTTP/1.1\r\n")]);
    assert.deepEqual(readProxyHeader(whole), { length: bytes.length, client }, String(bytes));
    for (let length = 1; length < bytes.length; length += 1)
      assert.equal(readProxyHeader(bytes.subarray(0, length)), "more", `${length} bytes of ${bytes}`);
  }
});

test("what is no header, or too long for one, is told at once", () => {
  const others = [
    ...[
      "GET / HTTP/1.1\r\n",
      "\x16\x03\x01",
      "PROXY TCP4 here there 1 2\r\n",
      "PROXY TCP4 1.2.3.4 1.2.3.4 99999 1\r\n",
    ],
    ...[
      "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
      "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
      "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
    ],
    ...[`PROXY UNKNOWN ${"x".repeat(200)}`, "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", "\r\n\r\n\0\r\nQUIX"],
  ].map((text) => Buffer.from(text, "latin1"));
  const wrong = [
    v2(0x31, 0x11, four),
    v2(0x22, 0x11, four),
    v2(0x21, 0x11, four.subarray(0, 8)),
    v2(0x21, 0x11, four, 65_535),
  ];
  for (const bytes of [...others, ...wrong]) assert.equal(readProxyHeader(bytes), "none", String(bytes));
});
