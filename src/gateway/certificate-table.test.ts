import assert from "node:assert/strict";
import { test } from "node:test";
import { testAuthority } from "../../test/tls-credential.ts";
import type { Store } from "../store/store.ts";
import { createCertificateTable } from "./certificate-table.ts";

test("a certificate that TLS does not take keeps no other one from being served", async () => {
  const good = testAuthority().credentialOf("good.test");
  const certificates = new Map([
    ["bad.test", { certificate: "no certificate", key: "no key" }],
    ["good.test", good],
  ]);
  const store = {
    certificates: {
      list: async () => [...certificates.keys()].map((name) => ({ name, chain: "there is one" })),
      credential: async (name: string) => certificates.get(name) ?? null,
    },
    database: { onChange: () => () => {} },
  };
  const table = createCertificateTable({
    ...{ store: store as unknown as Store, own: {}, hasOwnFiles: false, now: Date.now },
  });
  await table.opened();
  assert.ok(table.contextOf("good.test"));
  assert.equal(table.contextOf("bad.test"), undefined);
  await table.stop();
});
