import assert from "node:assert/strict";
import { test } from "node:test";
import { CertificateSigner, makeAuthority } from "../../lib/x509/certificate.ts";
import { NamedContexts } from "./named-contexts.ts";

const HOUR_MS = 3_600_000;
const validity = { fromMs: Date.now() - HOUR_MS, untilMs: Date.now() + 2 * HOUR_MS };
const signer = new CertificateSigner(makeAuthority("test", validity), "test");
const certificate = (name: string, hours: number) =>
  signer.hostCertificate(name, { ...validity, untilMs: Date.now() + hours * HOUR_MS });

test("a certificate that has expired gives way to a wildcard that has not", () => {
  let laterMs = 0;
  const contexts = new NamedContexts({ own: {}, hasOwnFiles: false, now: () => Date.now() + laterMs });
  contexts.set("www.shop.test", certificate("www.shop.test", 1));
  const exact = contexts.of("www.shop.test");
  assert.ok(exact);
  laterMs = HOUR_MS + 60_000;
  assert.equal(contexts.of("www.shop.test"), exact, "the last one, where there is no other");
  contexts.set("*.shop.test", certificate("*.shop.test", 2));
  assert.notEqual(contexts.of("www.shop.test"), exact);
  laterMs = 0;
  assert.equal(contexts.of("www.shop.test"), exact);
});

test("the operator's files come before certificates of an authority for the platform's names", () => {
  const own = { publicHost: "berth.test", domain: "apps.test" };
  for (const hasOwnFiles of [true, false]) {
    const contexts = new NamedContexts({ own, hasOwnFiles, now: Date.now });
    for (const name of ["berth.test", "*.apps.test", "shop.test"]) contexts.set(name, certificate(name, 1));
    for (const host of ["berth.test", "x.apps.test"]) assert.equal(contexts.of(host) === undefined, hasOwnFiles, host);
    assert.ok(contexts.of("shop.test"));
  }
});
