import assert from "node:assert/strict";
import { test } from "node:test";
import { signWebhook, verifyWebhook, type WebhookSignature } from "./webhook-signature.ts";

const NOW = 1_800_000_000_000;
const BODY = '{"a":1}';

test("a signature holds for its body, secret and time only", () => {
  const given = signWebhook("secret", BODY, NOW);
  assert.deepEqual(given, {
    signature: "sha256=aa9e2e3575f5d7098b6caccd790888c36d5fdb63342a73bada2d6a51747a8494",
    timestamp: "1800000000",
  });
  const cases: [boolean, string, string, Partial<WebhookSignature>, number][] = [
    [true, "secret", BODY, {}, NOW + 299_000],
    [false, "secret", BODY, {}, NOW + 301_000],
    [false, "secret", BODY, {}, NOW - 301_000],
    [false, "other", BODY, {}, NOW],
    [false, "secret", `${BODY} `, {}, NOW],
    [false, "secret", BODY, { timestamp: "soon" }, NOW],
    [false, "secret", BODY, { signature: "sha256=" }, NOW],
  ];
  for (const [holds, secret, body, changed, nowMs] of cases)
    assert.equal(verifyWebhook(secret, body, { ...given, ...changed }, nowMs), holds, JSON.stringify(changed));
});
