import assert from "node:assert/strict";
import { test } from "node:test";
import { type AddressClass, classifyAddress, NON_PUBLIC_IPV4, parseAddress } from "./address-class.ts";

const TABLE: [string, AddressClass][] = [
  ["1.1.1.1", "public"],
  ["2606:4700::1111", "public"],
  ["127.0.0.1", "private"],
  ["10.1.2.3", "private"],
  ["172.31.255.255", "private"],
  ["172.32.0.0", "public"],
  ["192.168.0.1", "private"],
  ["100.64.0.1", "private"],
  ["::1", "private"],
  ["fd12::1", "private"],
  ["::ffff:127.0.0.1", "private"],
  ["::ffff:7f00:1", "private"],
  ["64:ff9b::a00:1", "private"],
  ["::ffff:8.8.8.8", "public"],
  ["169.254.169.254", "forbidden"],
  ["::ffff:169.254.169.254", "forbidden"],
  ["fd00:ec2::254", "forbidden"],
  ["fe80::1", "forbidden"],
  ["0.0.0.0", "forbidden"],
  ["::", "forbidden"],
  ["224.0.0.1", "forbidden"],
  ["255.255.255.255", "forbidden"],
  ["::FFFF:10.0.0.1", "private"],
  ["0::ffff:10.0.0.1", "private"],
  ["0:0:0:0:0:ffff:a00:1", "private"],
  ["0::1", "private"],
  ["0:0:0:0:0:0:0:1", "private"],
  ["::10.0.0.1", "forbidden"],
  ["::ffff:0:10.0.0.1", "forbidden"],
  ["64:ff9b::8.8.8.8", "public"],
  ["64:ff9b::a9fe:a9fe", "forbidden"],
  ["64:ff9b:1::808:808", "forbidden"],
  ["2002:a00:1::1", "forbidden"],
  ["2001:0:a00:1::1", "forbidden"],
  ["2001:4860:4860::8888", "public"],
  ["100::1", "forbidden"],
  ["4000::1", "forbidden"],
  ["168.63.129.16", "forbidden"],
  ["::ffff:168.63.129.16", "forbidden"],
  ["100.100.100.200", "forbidden"],
  ["192.88.99.1", "forbidden"],
  ["198.18.0.1", "forbidden"],
  ["198.20.0.1", "public"],
  ["fe80::1%eth0", "forbidden"],
  ["127.1", "forbidden"],
  ["0x7f.0.0.1", "forbidden"],
  ["localhost", "forbidden"],
  ["", "forbidden"],
];

for (const [address, expected] of TABLE) {
  test(`${address || "nothing"} is ${expected}`, () => assert.equal(classifyAddress(address), expected));
}

test("bytes and the standard library's own reading of an address agree", () => {
  const words = [0, 1, 0x7f, 0xa00, 0xff9b, 0xffff, 0xfe80, 0x2001];
  for (let seed = 0; seed < 2000; seed++) {
    const picked = Array.from({ length: 8 }, (_, place) => words[(seed * (place * 7 + 3) + (seed >> place)) % 8] ?? 0);
    const text = picked.map((word) => word.toString(16)).join(":");
    const short = new URL(`http://[${text}]/`).hostname.slice(1, -1);
    assert.deepEqual(parseAddress(short), parseAddress(text), text);
    assert.deepEqual(parseAddress(text.toUpperCase()), parseAddress(text), text);
  }
});

test("the networks for packet filters do not overlap, and leave out none that is not public", () => {
  assert.ok(NON_PUBLIC_IPV4.includes("168.63.129.16/32"));
  assert.ok(NON_PUBLIC_IPV4.includes("100.64.0.0/10"));
  assert.ok(!NON_PUBLIC_IPV4.includes("100.100.100.200/32"), "lies within 100.64.0.0/10");
});
