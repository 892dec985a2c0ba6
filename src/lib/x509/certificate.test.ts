import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { connect, createServer } from "node:tls";
import { CertificateSigner, makeAuthority } from "./certificate.ts";

const DAY_MS = 86_400_000;

test("a server with a certificate of an own authority is accepted by its names and addresses only", async (t) => {
  const now = Date.now();
  const validity = { fromMs: now - DAY_MS, untilMs: now + DAY_MS };
  const authority = makeAuthority("Test CA", validity);
  const signer = new CertificateSigner(authority, "Test CA");
  const others = ["*.apps.test", "127.0.0.1", "fe80::1:2"];
  const { certificate: cert, key } = signer.hostCertificate("one.test", validity, others);
  const ca = authority.certificate;
  const read = new X509Certificate(cert);
  assert.ok(read.verify(new X509Certificate(ca).publicKey));
  assert.ok(new X509Certificate(ca).ca && !read.ca);
  assert.equal(read.checkIP("fe80::1:2"), "fe80::1:2");
  assert.equal(Date.parse(read.validTo), Math.floor((now + DAY_MS) / 1000) * 1000);
  const server = createServer({ cert, key }, (socket) => socket.end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const ask = (servername: string) =>
    new Promise<string>((resolve) => {
      const socket = connect({ port, host: "127.0.0.1", servername, ca });
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      socket.on("data", (data) => resolve(String(data)));
    });
  assert.equal(await ask("one.test"), "hello");
  assert.equal(await ask("x.apps.test"), "hello");
  assert.equal(await ask("two.test"), "ERR_TLS_CERT_ALTNAME_INVALID");
});
