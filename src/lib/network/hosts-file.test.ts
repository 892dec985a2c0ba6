import assert from "node:assert/strict";
import { test } from "node:test";
import { addressesIn } from "./hosts-file.ts";

test("a name has the addresses of its lines, in any case of letters; comments and broken lines name nothing", () => {
  const text =
    "192.0.2.1 one.test One-Alias # two.test\n#192.0.2.2 one.test\n2001:DB8::1\tone.test\nnonsense one.test\n";
  assert.deepEqual(addressesIn(text, "One.Test"), ["192.0.2.1", "2001:db8::1"]);
  assert.deepEqual(addressesIn(text, "one-alias"), ["192.0.2.1"]);
  assert.deepEqual(addressesIn(text, "two.test"), []);
});
