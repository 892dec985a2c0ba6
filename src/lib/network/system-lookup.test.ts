import assert from "node:assert/strict";
import { test } from "node:test";
import { createSystemLookup } from "./system-lookup.ts";

test("names that are answered slowly hold one thread, and few wait", async () => {
  const asked: { name: string; answer(found: { address: string }[]): void }[] = [];
  const lookUp = createSystemLookup((name) => new Promise((answer) => asked.push({ name, answer })));
  const first = lookUp("slow-0");
  const waiting = Array.from({ length: 64 }, (_, index) => lookUp(`slow-${index + 1}`));
  await assert.rejects(lookUp("one-more"), /Too many names wait/);
  assert.deepEqual(
    asked.map(({ name }) => name),
    ["slow-0"],
  );
  for (let index = 0; index <= waiting.length; index += 1) {
    asked[index]?.answer([{ address: `192.0.2.${index}` }]);
    assert.deepEqual(await (index === 0 ? first : waiting[index - 1]), [`192.0.2.${index}`]);
    await new Promise(setImmediate);
  }
  assert.equal(asked.length, 65);
});

test("the system knows names that name servers do not", async () => {
  const addresses = await createSystemLookup()("localhost");
  assert.ok(
    addresses.some((address) => address === "127.0.0.1" || address === "::1"),
    addresses.join(),
  );
});
