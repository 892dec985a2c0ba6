/** The operator's certificate, or one of an authority for the platform's host: served, replaced, and told to browsers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, unwatchFile, watchFile, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { startTestPlatform, TEST_KEY } from "../platform.ts";
import { testAuthority } from "../tls-credential.ts";
import { until } from "../triggers/agent-world.ts";

const HEADERS = { authorization: `Bearer ${TEST_KEY}`, host: "berth.test" };

/** The field of an answer that tells browsers to use HTTPS only. */
const strictOf = (origin: string, path: string): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const send = origin.startsWith("https:") ? httpsRequest : httpRequest;
    const options = { headers: HEADERS, agent: false, rejectUnauthorized: false };
    const asked = send(`${origin}${path}`, options, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.headers["strict-transport-security"]));
    });
    asked.on("error", reject).end();
  });

const serialOf = (port: number, servername = "berth.test"): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", servername, rejectUnauthorized: false };
    const socket = connect(options, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on("error", reject);
  });

test("the operator's certificate is served, replaced when its files change, and makes browsers stay with HTTPS", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-own-certificate-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const first = testAuthority().credentialOf("berth.test");
  writeFileSync(certFile, first.certificate);
  writeFileSync(keyFile, first.key);
  await using platform = await startTestPlatform({ config: { tls_cert: certFile, tls_key: keyFile } });
  const { origin, port } = new URL(platform.app.listensAt);
  for (const path of ["/v0/workspaces", "/v0/none", "/docs", "/healthz"])
    assert.equal(await strictOf(origin, path), "max-age=31536000", path);
  assert.equal(await strictOf(origin, "/main/sandboxes/none"), undefined, "a workload decides for itself");
  assert.equal(await strictOf(`http://127.0.0.1:${port}`, "/v0/workspaces"), undefined, "plain HTTP on loopback");
  const session = connectHttp2(origin, { rejectUnauthorized: false });
  t.after(() => session.destroy());
  const stream = session.request({ ":path": "/v0/workspaces", authorization: HEADERS.authorization });
  const [fields] = await once(stream, "response");
  assert.equal(fields["strict-transport-security"], "max-age=31536000");
  const before = await serialOf(Number(port));
  const next = testAuthority().credentialOf("berth.test");
  // Listeners of one file are called together: behind this one the server has looked at a pair that does not match.
  const looked = new Promise((resolve) => watchFile(certFile, resolve));
  t.after(() => unwatchFile(certFile));
  writeFileSync(certFile, next.certificate);
  await looked;
  assert.equal(await serialOf(Number(port)), before, "the key of the new certificate is not there yet");
  writeFileSync(keyFile, next.key);
  await until("the new certificate", async () => (await serialOf(Number(port))) !== before);
});

test("with the server's own authority browsers are told nothing, until an authority's certificate is there", async () => {
  await using platform = await startTestPlatform({ config: { tls: "auto", public_url: "https://berth.test" } });
  const { origin, port } = new URL(platform.app.listensAt);
  assert.equal(await strictOf(origin, "/v0/workspaces"), undefined);
  const times = { notBefore: Date.now(), notAfter: Date.now() + 86_400_000, renewAt: Date.now() + 80_000_000 };
  const put = async (name: string, domainUid: string): Promise<void> => {
    const { certificate, key } = testAuthority().credentialOf(name);
    const issued = { domainUid, source: "acme", chain: certificate, key, ...times } as const;
    await platform.app.store.certificates.put([name], issued);
  };
  // The wildcard of a workspace's domain is for other names below it, not for the platform's.
  const own = await serialOf(Number(port));
  await put("*.test", "domain-of-a-workspace");
  await until("the wildcard", async () => (await serialOf(Number(port), "shop.test")) !== own);
  assert.equal(await serialOf(Number(port)), own);
  assert.equal(await strictOf(origin, "/v0/workspaces"), undefined);
  await put("berth.test", "");
  await until("the header", async () => (await strictOf(origin, "/v0/workspaces")) === "max-age=31536000");
});
