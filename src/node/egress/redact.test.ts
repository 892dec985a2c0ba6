import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { redactor } from "./redact.ts";

const shown = (secrets: string[], ...chunks: string[]): Promise<string> =>
  text(Readable.from(chunks.map((chunk) => Buffer.from(chunk))).pipe(redactor(secrets)));

test("a secret is replaced wherever chunks cut the answer", async () => {
  const answer = 'a sk-hush-"42" b sk-hush-\\"42\\" c';
  for (let cut = 0; cut <= answer.length; cut++)
    assert.equal(
      await shown(['sk-hush-"42"'], answer.slice(0, cut), answer.slice(cut)),
      "a [redacted] b [redacted] c",
      `cut at ${cut}`,
    );
  assert.equal(await shown(['sk-hush-"42"'], ...answer), "a [redacted] b [redacted] c");
});

test("a secret that begins with another secret is replaced as a whole, wherever chunks cut the answer", async () => {
  const secrets = ["sk-1234", "sk-1234-admin"];
  for (const order of [secrets, secrets.toReversed()]) {
    assert.equal(await shown(order, "key sk-1234", "-admin."), "key [redacted].");
    assert.equal(await shown(order, ..."key sk-1234-admin, sk-1234-adm."), "key [redacted], [redacted]-adm.");
    assert.equal(await shown(order, "key sk-1234"), "key [redacted]");
  }
});

test("an answer that the server cuts within a secret does not show most of the secret", async () => {
  assert.equal(await shown(["sk-0123456789abcdef"], "key sk-0123456789", "abcde"), "key [redacted]");
  assert.equal(await shown(["sk-0123456789abcdef"], "ask", "-"), "ask-");
});
