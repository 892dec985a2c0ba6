import assert from "node:assert/strict";
import { test } from "node:test";
import { printable, printableJson } from "./printable.ts";

test("characters that a terminal obeys are replaced, and those that it does not draw are shown as numbers", () => {
  const shown: Record<string, string> = {
    "a\u001b[2Jb\u009Bc": "a\uFFFD[2Jb\uFFFDc",
    "safe\u202Eexe.txt": "safe\\u{202E}exe.txt",
    "\u2066\u200E\u061C": "\\u{2066}\\u{200E}\\u{61C}",
    "pay\u200Bpal so\u00ADft": "pay\\u{200B}pal so\\u{AD}ft",
    "\u{E0069}\uFEFF\u3164": "\\u{E0069}\\u{FEFF}\\u{3164}",
    "one\u2028two": "one\\u{2028}two",
    "joined\u200Dletters 1\uFE00": "joined\\u{200D}letters 1\\u{FE00}",
  };
  for (const [text, wanted] of Object.entries(shown)) assert.equal(printable(text), wanted);
});

test("text in any script and emoji stay as they are", () => {
  for (const text of ["tab\tnew\nline", "größer 日本語 العربية", "👩‍💻 👩🏽‍🚀 ✔️ 🏳️‍🌈 👍🏽"])
    assert.equal(printable(text), text);
});

test("JSON for a terminal is JSON of the same value", () => {
  const value = { name: "a\u202Eb\u{E0041}\u009B\u00AD👩‍💻", list: ["\u001b[0m"] };
  const text = printableJson(value, 2);
  assert.doesNotMatch(text, /[\u007F-\u009F\p{Cf}]/u);
  assert.deepEqual(JSON.parse(text), value);
});
