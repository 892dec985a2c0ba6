/** What an admin reads is what is approved: nothing is hidden in it, and nothing is exchanged while they read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inView } from "../../console/lib/in-view.ts";
import { visible } from "../../console/lib/visible.ts";

test("characters that nobody sees are shown as their numbers, and letters of all scripts stay", () => {
  const smuggled = [..."hi"].map((char) => String.fromCodePoint(0xe0000 + char.charCodeAt(0))).join("");
  assert.equal(visible(`Adds.${smuggled}`), "Adds.\\u{E0068}\\u{E0069}");
  for (const code of [0x200b, 0x200d, 0x202e, 0x2066, 0xfeff, 0xad, 0x2028, 0xfe0f, 0xe0100, 0x3164, 0x9b, 0xe000])
    assert.equal(visible(`a${String.fromCodePoint(code)}b`), `a\\u{${code.toString(16).toUpperCase()}}b`);
  const plain = '{\n  "description": "Größe, 数, שלום, é, 🙂 – ok"\n}';
  assert.equal(visible(plain), plain);
});

test("a definition that changes while it is read stays and cannot be approved; others wait", () => {
  const [first, second, changed] = [
    { name: "a", hash: "1" },
    { name: "b", hash: "1" },
    { name: "a", hash: "2" },
  ];
  const fresh = { shown: [{ item: first, isReplaced: false }], hasOthers: false };
  assert.deepEqual(inView([], [first]), fresh);
  assert.deepEqual(inView([first], [first, second]), { ...fresh, hasOthers: true });
  assert.deepEqual(inView([first], [changed]), { shown: [{ item: first, isReplaced: true }], hasOthers: true });
  assert.deepEqual(inView([first, second], [first]), fresh, "one was approved");
  assert.deepEqual(inView([second], [first]), fresh, "all were approved");
});
