/** Pulls from a registry on loopback that the test makes, honest first, then in every way it may misbehave. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { parseReference } from "../../src/contract/image-reference.ts";
import { listManifests, removeImage, resolveImage } from "../../src/node/drivers/local/images/images.ts";
import { NO_CREDENTIALS, parseDockerConfig } from "../../src/registry/credentials.ts";
import { parseMirror } from "../../src/registry/registries.ts";
import { tar } from "../image-archive.ts";
import { ARCHITECTURE, addBlob, addImage, addIndex, digestOf, startFakeRegistry } from "./fake-registry.ts";
import { bottom, gzip, lowersOf, NO_LAYERS, place, refusal, registryFor, skip, top, zstd } from "./pull-place.ts";

test("an image arrives layer by layer, for this machine, with its configuration", { skip }, async (t) => {
  const [registry, { store, pull, downloads, unpacked }] = [await registryFor(t), await place(t)];
  const config = { Env: ["A=b"], WorkingDir: "/app", Cmd: ["/run"] };
  const other = addImage(registry, null, { layers: [bottom], platform: { os: "linux", architecture: "s390x" } });
  const mine = addImage(registry, null, { layers: [bottom, top], config, pack: gzip });
  const index = addIndex(registry, "acme/tool:1", [
    { digest: other, platform: { os: "linux", architecture: "s390x" } },
    { digest: mine, platform: { os: "linux", architecture: ARCHITECTURE } },
  ]);
  const pulled = await pull(`${registry.host}/acme/tool:1`);
  assert.deepEqual([pulled.digest, pulled.named], [mine, index]);
  const image = resolveImage(store, pulled.name);
  assert.deepEqual([image?.env, image?.workDir, image?.argv], [{ A: "b" }, "/app", ["/run"]]);
  const [upper = "", lower = ""] = lowersOf(store, pulled.name);
  assert.equal(readFileSync(join(lower, "etc/kept"), "utf8"), "1");
  assert.equal(readFileSync(join(upper, "data/new"), "utf8"), "4");
  assert.equal(readFileSync(join(upper, "etc/more"), "utf8"), "5", "a link of the layer below is followed");
  assert.deepEqual(downloads(), [], "no download stays");
  // The next image of the repository brings only its own layer.
  const third = tar([{ path: "data/third", content: "6" }]);
  addImage(registry, "acme/tool:2", { layers: [bottom, top, third], pack: gzip });
  const [before, jobs] = [registry.seen.length, unpacked()];
  const next = await pull(`${registry.host}/acme/tool:2`);
  const blobs = registry.seen.slice(before).filter((each) => each.includes("/blobs/"));
  assert.deepEqual([blobs.length, unpacked() - jobs], [2, 1], "its configuration and one layer");
  assert.deepEqual(lowersOf(store, next.name).slice(1), [upper, lower], "layers are stored once");
  assert.equal(await removeImage(store, pulled.name, NO_LAYERS), true);
  assert.deepEqual(
    lowersOf(store, next.name).map((dir) => existsSync(dir)),
    [true, true, true],
  );
  await removeImage(store, next.name, NO_LAYERS);
  assert.deepEqual([readdirSync(join(store.dir, "layers")), readdirSync(join(store.dir, "notes"))], [[], []]);
});

test("zstd and plain layers, a digest, and pulls at the same time", { skip }, async (t) => {
  const [registry, { store, pull, puller, unpacked }] = [await registryFor(t), await place(t)];
  const digest = addImage(registry, "z:1", { layers: [bottom, top], pack: zstd });
  addImage(registry, "z:2", { layers: [bottom, tar([{ path: "x", content: "x" }])], pack: zstd });
  const names = [`${registry.host}/z:1`, `${registry.host}/z@${digest}`, `${registry.host}/z:2`];
  const [first, second] = await Promise.all(names.map((name) => pull(name)));
  assert.equal(first?.name, second?.name);
  const layers = registry.seen.filter((each) => each.includes(digestOf(zstdCompressSync(bottom))));
  assert.deepEqual([layers.length, unpacked()], [1, 3], "the layer of all three is downloaded and unpacked once");
  assert.equal(listManifests(store).length, 2);
  assert.equal(puller.isHeld(first?.name ?? ""), false);
  addImage(registry, "plain:1", { layers: [bottom] });
  await pull(`${registry.host}/plain:1`);
});

test("a registry that names the layers of others does not get them", { skip }, async (t) => {
  const [honest, thief] = [await registryFor(t), await registryFor(t)];
  const { pull } = await place(t);
  addImage(honest, "private:1", { layers: [bottom] });
  await pull(`${honest.host}/private:1`);
  // The manifest and the configuration are known to many; the bytes of the layer are not.
  addImage(thief, "mine:1", { layers: [bottom] });
  thief.blobs.delete(digestOf(bottom));
  assert.equal((await refusal(pull(`${thief.host}/mine:1`)))[0], "not_found");
  // A layer of the thief's own in place of the private one, under the private one's digest.
  const junk = tar([{ path: "junk", content: "junk" }]);
  addImage(thief, "mine:2", { layers: [junk], more: { rootfs: { diff_ids: [digestOf(bottom)] } } });
  const [reason, message] = await refusal(pull(`${thief.host}/mine:2`));
  assert.deepEqual([reason, /another digest/.test(message)], ["broken", true]);
});

test("credentials: basic, tokens, and what is said without them", { skip }, async (t) => {
  const registry = await registryFor(t);
  const { pull } = await place(t);
  addImage(registry, "acme/tool:1", { layers: [bottom] });
  const auth = Buffer.from("ada:secret").toString("base64");
  const known = parseDockerConfig(JSON.stringify({ auths: { [`http://${registry.host}/v2/`]: { auth } } }));
  registry.intercept = (req, res) => {
    if (req.headers.authorization === `Basic ${auth}`) return false;
    res.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
    return true;
  };
  const [reason, message] = await refusal(pull(`${registry.host}/acme/tool:1`));
  assert.equal(reason, "unauthorized");
  assert.match(message, new RegExp(`${registry.host}/acme/tool:1 cannot be pulled: ${registry.host} refuses access`));
  await pull(`${registry.host}/acme/tool:1`, known);
  const asked: string[] = [];
  registry.intercept = (req, res) => {
    if (req.url?.startsWith("/token")) {
      asked.push(`${req.headers.authorization} ${new URL(req.url, "http://x").searchParams}`);
      res.end(JSON.stringify({ access_token: "t0k" }));
      return true;
    }
    if (req.headers.authorization === "Bearer t0k") return false;
    const realm = `http://${registry.host}/token`;
    res.writeHead(401, { "www-authenticate": `Basic realm="y", Bearer realm="${realm}",service="reg, one"` }).end();
    return true;
  };
  addImage(registry, "acme/tool:2", { layers: [top] });
  await pull(`${registry.host}/acme/tool:2`, known);
  assert.deepEqual(asked, [`Basic ${auth} service=reg%2C+one&scope=repository%3Aacme%2Ftool%3Apull`]);
});

test("a connection that breaks is continued from where it was", { skip }, async (t) => {
  const [registry, { pull, downloads }] = [await registryFor(t), await place(t)];
  const large = tar([{ path: "large", content: Buffer.alloc(3_000_000, "x") }]);
  addImage(registry, "big:1", { layers: [large] });
  const ranges: (string | undefined)[] = [];
  let cuts = 3;
  registry.intercept = (req, res) => {
    if (!req.url?.endsWith(digestOf(large))) return false;
    ranges.push(req.headers.range);
    if (cuts-- <= 0) return false;
    const from = Number(/\d+/.exec(req.headers.range ?? "0")?.[0]);
    res.writeHead(from > 0 ? 206 : 200, {
      "content-length": large.length - from,
      "content-range": `bytes ${from}-${large.length - 1}/${large.length}`,
    });
    res.write(large.subarray(from, from + 500_000), () => res.destroy());
    return true;
  };
  await pull(`${registry.host}/big:1`);
  assert.equal(ranges[0], undefined);
  assert.ok(
    ranges.slice(1).every((range) => /^bytes=[1-9]\d*-$/.test(range ?? "")),
    JSON.stringify(ranges),
  );
  // A registry that breaks without sending anything is given up; the next pull continues.
  const other = tar([{ path: "other", content: Buffer.alloc(2_000_000, "y") }]);
  addImage(registry, "big:2", { layers: [other] });
  let isDown = false;
  registry.intercept = (req, res) => {
    if (!req.url?.endsWith(digestOf(other))) return false;
    if (isDown) res.destroy();
    else {
      res.writeHead(200, { "content-length": other.length });
      res.write(other.subarray(0, 1_000_000), () => res.destroy());
    }
    isDown = true;
    return true;
  };
  assert.equal((await refusal(pull(`${registry.host}/big:2`)))[0], "unreachable");
  assert.equal(downloads().length, 1);
  registry.intercept = null;
  const before = registry.seen.length;
  await pull(`${registry.host}/big:2`);
  assert.ok(registry.seen.length > before);
  assert.deepEqual(downloads(), []);
});

test("mirrors are asked first; what they lack comes from the registry itself", { skip }, async (t) => {
  const [registry, mirror] = [await registryFor(t), await registryFor(t)];
  const named = parseMirror(`${registry.host}=${mirror.host}/hub`);
  assert.ok(named);
  const { pull } = await place(t, { mirrors: [named] });
  addImage(mirror, "hub/acme/tool:1", { layers: [bottom] });
  addImage(registry, "acme/tool:2", { layers: [bottom, top] });
  await pull(`${registry.host}/acme/tool:1`);
  assert.deepEqual(registry.seen, []);
  await pull(`${registry.host}/acme/tool:2`);
  assert.ok(registry.seen.length > 0);
});

test("every refusal names the registry, the image and the reason", { skip }, async (t) => {
  const [registry, { pull, store, downloads }] = [await registryFor(t), await place(t, { allowed: null })];
  const refused = async (name: string, reason: string, text: RegExp): Promise<void> => {
    const [why, message] = await refusal(pull(`${registry.host}/${name}`));
    assert.equal(why, reason, message);
    assert.match(message, text);
    assert.ok(message.includes(`${registry.host}/${name}`), message);
  };
  await refused("nobody/knows:1", "not_found", /does not have it \(404 not found\)/);
  addImage(registry, "arm:1", { layers: [bottom], platform: { os: "linux", architecture: "s390x" } });
  await refused("arm:1", "wrong_platform", /it is for linux\/s390x, and this machine is linux\//);
  addIndex(registry, "arm:2", [
    { digest: digestOf(bottom), platform: { os: "windows", architecture: "amd64" } },
    { digest: digestOf(top), platform: { os: "linux", architecture: "riscv64" } },
  ]);
  await refused("arm:2", "wrong_platform", /it is for windows\/amd64, linux\/riscv64/);
  addImage(registry, "busy:1", { layers: [bottom] });
  registry.intercept = (_, res) => Boolean(res.writeHead(429, { "retry-after": "3600" }).end());
  await refused("busy:1", "rate_limited", /429 rate limited\); it asks to wait 3600 s/);
  assert.equal(registry.seen.filter((each) => each.includes("busy")).length, 1, "a long pause is not waited for");
  registry.intercept = (_, res) => Boolean(res.writeHead(503).end());
  await refused("busy:1", "unreachable", /answers 503/);
  registry.intercept = (_, res) => Boolean(res.writeHead(307, { location: "/v2/busy/manifests/1" }).end());
  await refused("busy:1", "broken", /redirects more than/);
  registry.intercept = null;
  const manifests: [string, (manifest: Record<string, unknown>) => unknown, RegExp][] = [
    ["schema", () => ({ schemaVersion: 1, fsLayers: [] }), /schema 1/],
    [
      "helm",
      (m) => ({ ...m, layers: [{ mediaType: "application/vnd.cncf.helm", digest: digestOf(top), size: 1 }] }),
      /unknown type/,
    ],
    ["many", (m) => ({ ...m, layers: Array(200).fill((m.layers as object[])[0]) }), /does not describe an image/],
    ["path", (m) => ({ ...m, config: { mediaType: "x", digest: "sha256:../../x", size: 1 } }), /does not describe/],
    ["fewer", (m) => ({ ...m, layers: [] }), /differ in their layers/],
    ["negative", (m) => ({ ...m, layers: [{ ...(m.layers as object[])[0], size: -1 }] }), /does not describe/],
  ];
  for (const [name, manifest, text] of manifests) {
    addImage(registry, `${name}:1`, { layers: [bottom], manifest });
    await refused(`${name}:1`, "broken", text);
  }
  addImage(registry, "huge:1", {
    layers: [bottom],
    manifest: (m) => ({ ...m, layers: [{ ...(m.layers as object[])[0], size: 2 ** 40 }] }),
  });
  await refused("huge:1", "too_large", /bytes, more than/);
  registry.tags.set("long:1", addBlob(registry, Buffer.alloc(5 * 2 ** 20, " ")).digest);
  await refused("long:1", "too_large", /its manifest is longer/);
  addImage(registry, "config:1", {
    layers: [bottom],
    manifest: (m) => ({ ...m, config: { ...(m.config as object), size: 2 ** 30 } }),
  });
  await refused("config:1", "too_large", /configuration is too large/);
  assert.deepEqual([downloads(), readdirSync(join(store.dir, "layers")), listManifests(store)], [[], [], []]);
  assert.deepEqual(
    readdirSync(store.dir).filter((each) => each.startsWith(".")),
    [],
  );
});

test("content that is not what its digest says, bombs and tricks leave nothing", { skip }, async (t) => {
  const [registry, { pull, store, downloads }] = [await registryFor(t), await place(t)];
  const refused = async (name: string, text: RegExp): Promise<void> => {
    const [, message] = await refusal(pull(`${registry.host}/${name}`));
    assert.match(message, text);
    assert.deepEqual([downloads(), readdirSync(join(store.dir, "layers"))], [[], []]);
  };
  const digest = addImage(registry, "swap:1", { layers: [bottom] });
  registry.blobs.set(digestOf(bottom), Buffer.from(bottom).fill("!", 0, 4));
  await refused("swap:1", /has the content of sha256:/);
  registry.blobs.set(digestOf(bottom), Buffer.concat([bottom, bottom]));
  await refused("swap:1", /longer than the \d+ bytes/);
  registry.blobs.set(digest, Buffer.from("{}"));
  await refused("swap:1", /manifest is not what the registry says/);
  await refused(`swap@${digest}`, /its manifest has the digest/);
  // An endless body is read up to the size that the manifest says.
  addImage(registry, "endless:1", { layers: [top] });
  registry.intercept = (req, res) => {
    if (!req.url?.endsWith(digestOf(top))) return false;
    res.writeHead(200);
    const more = (): void => {
      while (!res.destroyed && res.write(Buffer.alloc(65_536)));
    };
    res.on("drain", more);
    more();
    return true;
  };
  await refused("endless:1", /longer than the \d+ bytes/);
  registry.intercept = null;
  const zeros = tar([{ path: "zeros", content: Buffer.alloc(72 * 2 ** 20) }]);
  addImage(registry, "bomb:1", { layers: [zeros], pack: gzip });
  await refused("bomb:1", /larger than an image may be/);
  addImage(registry, "escape:1", { layers: [tar([{ path: "../../escape", content: "x" }])] });
  await refused("escape:1", /cannot be pulled: /);
  addImage(registry, "device:1", { layers: [tar([{ path: "dev/sda", type: "4" }])] });
  await refused("device:1", /device file/);
  // The second layer is refused: the first, which was unpacked already, goes with it.
  addImage(registry, "half:1", { layers: [top, tar([{ path: "dev/sda", type: "4" }])] });
  await refused("half:1", /device file/);
});

test("no address leads to what a tenant may not reach", { skip }, async (t) => {
  const registry = await registryFor(t);
  const outside = await place(t, { privateAddresses: false });
  const here = await place(t);
  for (const name of ["127.0.0.1:1/a:1", "localhost:1/a:1", "[::1]:1/a:1", "10.0.0.1/a:1", "169.254.169.254/a:1"])
    assert.equal((await refusal(outside.pull(name)))[0], "refused", name);
  assert.equal((await refusal(here.pull("169.254.169.254/a:1")))[0], "refused");
  addImage(registry, "acme/tool:1", { layers: [bottom] });
  registry.intercept = (req, res) => {
    if (!req.url?.includes("/blobs/")) return false;
    res.writeHead(307, { location: "http://169.254.169.254/latest/meta-data" }).end();
    return true;
  };
  assert.deepEqual((await refusal(here.pull(`${registry.host}/acme/tool:1`)))[0], "refused");
  for (const realm of ["http://169.254.169.254/token", "ftp://127.0.0.1/x", "http://u:p@127.0.0.1/token"]) {
    registry.intercept = (_, res) =>
      Boolean(res.writeHead(401, { "www-authenticate": `Bearer realm="${realm}",service="x"` }).end());
    assert.ok(["refused", "broken"].includes((await refusal(here.pull(`${registry.host}/acme/tool:1`)))[0]), realm);
  }
  const onlyHub = await place(t, { allowed: ["docker.io"] });
  const [reason, message] = await refusal(onlyHub.pull(`${registry.host}/acme/tool:1`));
  assert.deepEqual([reason, /are not allowed on this server/.test(message)], ["refused", true]);
});

test("credentials do not follow a redirect to another host", { skip }, async (t) => {
  const [registry, elsewhere] = [await registryFor(t), await registryFor(t)];
  const { pull } = await place(t);
  addImage(registry, "acme/tool:1", { layers: [bottom] });
  for (const [digest, bytes] of registry.blobs) elsewhere.blobs.set(digest, bytes);
  const auth = Buffer.from("ada:secret").toString("base64");
  const leaked: (string | undefined)[] = [];
  elsewhere.intercept = (req) => {
    leaked.push(req.headers.authorization);
    return false;
  };
  registry.intercept = (req, res) => {
    if (req.headers.authorization === undefined) res.writeHead(401, { "www-authenticate": "Basic" }).end();
    else if (req.url?.includes("/blobs/")) res.writeHead(307, { location: `http://${elsewhere.host}${req.url}` }).end();
    else return false;
    return true;
  };
  const known = parseDockerConfig(JSON.stringify({ auths: { [registry.host]: { auth } } }));
  await pull(`${registry.host}/acme/tool:1`, known);
  assert.deepEqual(leaked, [undefined, undefined]);
  // The other host asks for them, at a token server of its own.
  const asked: (string | undefined)[] = [];
  elsewhere.intercept = (req, res) => {
    asked.push(req.headers.authorization);
    const realm = `Bearer realm="http://${elsewhere.host}/token",service="x"`;
    if (req.url?.startsWith("/token")) res.end(JSON.stringify({ token: "t0k" }));
    else res.writeHead(401, { "www-authenticate": realm }).end();
    return true;
  };
  addImage(registry, "acme/tool:2", { layers: [top] });
  const [reason, message] = await refusal(pull(`${registry.host}/acme/tool:2`, known));
  assert.deepEqual([reason, message.includes(`${elsewhere.host} refuses access`)], ["unauthorized", true], message);
  assert.ok(
    asked.every((each) => each === undefined),
    "no request to the other host brings credentials",
  );
});

test("a registry that never answers is given up when the time is over", { skip }, async (t) => {
  const [registry, { puller }] = [await registryFor(t), await place(t)];
  registry.intercept = () => true;
  const reference = parseReference(`${registry.host}/acme/silent:1`);
  assert.ok(reference);
  const [reason, message] = await refusal(
    puller.look({ workspace: "main", reference, credentials: NO_CREDENTIALS }, AbortSignal.timeout(100)),
  );
  assert.deepEqual([reason, /did not answer in time/.test(message)], ["unreachable", true]);
});

/** A certificate for 127.0.0.1 that nobody else has signed; null without openssl. */
function ownCertificate(t: TestContext): { key: Buffer; cert: Buffer } | null {
  const dir = mkdtempSync(join(tmpdir(), "pull-tls-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const files = ["-keyout", join(dir, "key.pem"), "-out", join(dir, "cert.pem")];
  const subject = ["-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
  const made = spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", ...subject, ...files]);
  return made.status === 0
    ? { key: readFileSync(join(dir, "key.pem")), cert: readFileSync(join(dir, "cert.pem")) }
    : null;
}

test("a registry with a certificate of a private authority", { skip }, async (t) => {
  const tls = ownCertificate(t);
  if (!tls) return t.skip("openssl is not installed");
  const secure = await startFakeRegistry(tls);
  t.after(() => secure[Symbol.asyncDispose]());
  // Nothing listens where the registry itself would be: only the mirror, which is spoken to with TLS, can have the image.
  const mirror = parseMirror(`127.0.0.1:1=https://${secure.host}`);
  assert.ok(mirror);
  const auth = Buffer.from("operator:secret").toString("base64");
  const credentials = parseDockerConfig(JSON.stringify({ auths: { [secure.host]: { auth } } }));
  addImage(secure, "acme/tool:1", { layers: [bottom] });
  secure.intercept = (req, res) => {
    if (req.headers.authorization === `Basic ${auth}`) return false;
    res.writeHead(401, { "www-authenticate": "Basic" }).end();
    return true;
  };
  const trusting = await place(t, { mirrors: [mirror], ca: tls.cert.toString("utf8"), credentials });
  await trusting.pull("127.0.0.1:1/acme/tool:1");
  const before = secure.seen.length;
  const wary = await place(t, { mirrors: [mirror], credentials });
  assert.equal((await refusal(wary.pull("127.0.0.1:1/acme/tool:1")))[0], "unreachable");
  assert.equal(secure.seen.length, before, "an unknown certificate gets no request");
});
