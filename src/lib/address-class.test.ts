import assert from "node:assert/strict";
import { test } from "node:test";
import { type AddressClass, classifyAddress } from "./address-class.ts";

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
  ["localhost", "forbidden"],
  ["", "forbidden"],
];

for (const [address, expected] of TABLE) {
  test(`${address || "nothing"} is ${expected}`, () => assert.equal(classifyAddress(address), expected));
}
