/** Images of a registry on loopback, run by this machine's own driver: Debian's registry, and one that the test makes. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { runBerth } from "../berth-process.ts";
import { type Entry, tar } from "../image-archive.ts";
import type { TestPlatform } from "../platform.ts";
import { type DebianRegistry, startDebianRegistry, USER } from "../registry/debian-registry.ts";
import { addImage, digestOf, type FakeRegistry, OCI, startFakeRegistry } from "../registry/fake-registry.ts";
import { pushImage } from "../registry/push-image.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";
import { eventually } from "../sandboxd-harness.ts";

/** Programs of this machine that need the C library and nothing else; the image brings none. */
const program = (name: string): Entry => ({ path: `bin/${name}`, content: readFileSync(`/bin/${name}`), mode: 0o755 });

const bottom = tar([
  program("sh"),
  program("cat"),
  program("sleep"),
  { path: "etc/kept", content: "kept\n" },
  { path: "etc/removed", content: "removed\n" },
  { path: "data/old", content: "old\n" },
]);
const top = tar([
  { path: "etc/.wh.removed" },
  { path: "data/.wh..wh..opq" },
  { path: "data/new", content: "new\n" },
  { path: "work/", type: "5", mode: 0o755 },
]);
const moved = tar([{ path: "etc/kept", content: "moved\n" }]);
const config = { Env: ["GREETING=from a registry", "PATH=/bin"], WorkingDir: "/work", Cmd: ["/bin/cat", "/etc/kept"] };
const gzip = { mediaType: `${OCI}.layer.v1.tar+gzip`, bytes: (bytes: Buffer) => gzipSync(bytes) };
const zstd = { mediaType: `${OCI}.layer.v1.tar+zstd`, bytes: (bytes: Buffer) => zstdCompressSync(bytes) };

interface Event {
  type: string;
  message: string;
}

describe("an image of a registry", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  let registry: FakeRegistry;
  let debian: DebianRegistry | { reason: string };
  const settings = () => ({
    standby_after: "60",
    registries: ["host" in debian ? debian.host : "none", registry.host, "localhost:1"].join(","),
  });
  before(async () => {
    registry = await startFakeRegistry();
    debian = await startDebianRegistry();
    await suite.start(settings());
  });
  after(async () => {
    await suite.stop();
    await registry[Symbol.asyncDispose]();
    if ("host" in debian) await debian[Symbol.asyncDispose]();
  });
  const call: TestPlatform["call"] = (...args) => suite.platform().call(...args);
  const wanting = (name: string, runtime: object) =>
    call("POST", "/sandboxes", { body: { metadata: { name }, spec: { runtime: { memory: 256, ...runtime } } } });
  const images = (folder: string): string[] => {
    const dir = join(suite.platform().dataDir, "runtime/images", folder);
    return existsSync(dir) ? readdirSync(dir) : [];
  };
  /** The registry of the server has what was pulled, as the other registry sent it. */
  const served = async (repository: string, tag: string, digest: string): Promise<void> => {
    const { url, apiKey } = suite.platform();
    const ask = (path: string, method = "GET"): Promise<Response> =>
      fetch(`${url}/v2/${repository}/${path}`, { method, headers: { authorization: `Bearer ${apiKey}` } });
    const manifest = Buffer.from(await (await ask(`manifests/${tag}`)).arrayBuffer());
    assert.equal(digestOf(manifest), digest);
    const { config: document, layers } = JSON.parse(manifest.toString("utf8"));
    for (const each of [document, ...layers]) {
      const blob = Buffer.from(await (await ask(`blobs/${each.digest}`)).arrayBuffer());
      assert.deepEqual([digestOf(blob), blob.length], [each.digest, each.size]);
      // A client that pushes leaves out what is there, and a manifest may name only what was pushed.
      assert.equal((await ask(`blobs/${each.digest}`, "HEAD")).status, 404);
    }
    assert.equal((await ask(`blobs/sha256:${"0".repeat(64)}`)).status, 404);
  };

  test("Debian's registry: refused without credentials, pulled with those of a connection, run", async (t) => {
    if ("reason" in debian) return t.skip(debian.reason);
    const { host } = debian;
    addImage(registry, "team/tool:1", { layers: [bottom, top], config, pack: gzip });
    await debian.push(registry, "team/tool:1");
    const image = `${host}/team/tool:1`;
    const refused = await wanting("real", { image });
    assert.deepEqual([refused.status, refused.body.code], [400, "INVALID_IMAGE"], JSON.stringify(refused.body));
    assert.equal(refused.body.details.reason, "unauthorized");
    assert.match(refused.body.message, new RegExp(`${image} cannot be pulled: ${host} refuses access`));
    assert.equal((await call("GET", "/sandboxes/real")).status, 404, "nothing is stored");
    const connection = {
      metadata: { name: "our-registry" },
      spec: {
        integration: "registry",
        config: { registry: host },
        secret: { USERNAME: USER.name, PASSWORD: USER.password },
      },
    };
    const connected = await call("POST", "/integrations/connections", { body: connection });
    assert.deepEqual([connected.status, connected.body.status], [200, "DEPLOYED"], JSON.stringify(connected.body));
    const made = await suite.create("real", { runtime: { memory: 256, image } });
    const ran = await suite.exec("real", "echo $GREETING; pwd; cat /etc/kept /data/new; cat /etc/removed /data/old");
    assert.equal(ran.body.stdout, "from a registry\n/work\nkept\nnew\n", JSON.stringify(ran.body));
    const digest = registry.tags.get("team/tool:1") ?? "none";
    assert.equal(made.imageSource, `${image}@${digest}`);
    const types = made.events.map((event: Event) => event.type);
    assert.ok(types.indexOf("pulling") < types.indexOf("deployed"), JSON.stringify(types));
    assert.ok(made.events.at(-1).message.includes(digest), "the event says what runs");
    const [listed] = (await call("GET", "/images")).body;
    assert.deepEqual([listed.metadata.resourceType, listed.spec.tags[0].digest], ["registry", digest]);
    assert.equal(listed.spec.tags[0].image, image);
    const missing = await wanting("never", { image: `${host}/team/tool:2` });
    assert.deepEqual([missing.status, missing.body.details.reason], [400, "not_found"]);
    // The server ends and another takes over: the image is here and is not asked for again.
    await suite.restart(settings());
    await call("DELETE", "/integrations/connections/our-registry");
    await suite.create("again", { runtime: { memory: 256, image } });
    assert.equal((await suite.exec("again", "cat /etc/kept")).body.stdout, "kept\n");
    assert.equal((await wanting("always", { image, imagePullPolicy: "Always" })).status, 400);
    const auth = Buffer.from(`${USER.name}:${USER.password}`).toString("base64");
    const dockerConfig = JSON.stringify({ auths: { [host]: { auth } } });
    await suite.create("own", { runtime: { memory: 256, image, imagePullPolicy: "Always", dockerConfig } });
    const shown = JSON.stringify((await call("GET", "/sandboxes/own")).body);
    assert.ok(!shown.includes(auth), "credentials are not shown");
    for (const name of ["real", "again", "own"]) await call("DELETE", `/sandboxes/${name}`);
  });

  test("an image that is pushed to the server itself runs; one that cannot be unpacked is refused", async () => {
    const { url, apiKey } = suite.platform();
    const push = { authorization: `Bearer ${apiKey}`, to: "main/pushed:1" };
    const digest = addImage(registry, "pushed:1", { layers: [bottom, top], config, pack: gzip });
    await pushImage(url, registry, "pushed:1", push);
    const made = await suite.create("pushed", { runtime: { memory: 256, image: "pushed:1" } });
    const ran = await suite.exec("pushed", "echo $GREETING; cat /etc/kept /data/new; cat /etc/removed /data/old");
    assert.equal(ran.body.stdout, "from a registry\nkept\nnew\n", JSON.stringify(ran.body));
    assert.ok(made.imageSource.endsWith(`/main/sandbox/pushed:1@${digest}`), made.imageSource);
    const layers = images("layers").length;
    addImage(registry, "trick:1", { layers: [bottom, tar([{ path: "../../../evil", content: "x" }])], config });
    await assert.rejects(pushImage(url, registry, "trick:1", push), /400 .*MANIFEST_INVALID/);
    addImage(registry, "other:1", { layers: [moved], more: { rootfs: { diff_ids: [`sha256:${"0".repeat(64)}`] } } });
    await assert.rejects(pushImage(url, registry, "other:1", push), /another digest than its configuration says/);
    const onBase = { ...config, Labels: { "berth.base": "machine" } };
    addImage(registry, "base:1", { layers: [tar([{ path: "usr", type: "2", link: "/etc" }])], config: onBase });
    await assert.rejects(pushImage(url, registry, "base:1", push), /do not fit the base image of this machine/);
    assert.equal(images("layers").length, layers, "nothing is left of them");
    assert.equal((await call("GET", "/images/sandbox/pushed")).body.spec.tags[0].digest, digest);
    await call("DELETE", "/sandboxes/pushed");
    assert.equal((await call("DELETE", "/images/sandbox/pushed")).status, 200);
  });

  test("imagePullPolicy: never asks, asks once, asks every time", async () => {
    const image = `${registry.host}/moving`;
    addImage(registry, "moving:latest", { layers: [bottom, top], config, pack: zstd });
    const never = await wanting("p1", { image, imagePullPolicy: "Never" });
    assert.equal(never.status, 400);
    assert.match(never.body.message, /is not on this machine, and imagePullPolicy is Never/);
    await suite.create("p1", { runtime: { memory: 256, image } });
    const first = registry.tags.get("moving:latest") ?? "none";
    addImage(registry, "moving:latest", { layers: [bottom, top, moved], config });
    const second = registry.tags.get("moving:latest") ?? "none";
    const before = registry.seen.length;
    for (const [name, imagePullPolicy] of [
      ["p2", "Never"],
      ["p3", "IfNotPresent"],
    ] as const) {
      const made = await suite.create(name, { runtime: { memory: 256, image, imagePullPolicy } });
      assert.ok(made.imageSource.endsWith(first), name);
    }
    assert.equal(registry.seen.length, before, "the registry is not asked");
    const newest = await suite.create("p4", { runtime: { memory: 256, image, imagePullPolicy: "Always" } });
    assert.ok(newest.imageSource.endsWith(second));
    assert.equal((await suite.exec("p4", "cat /etc/kept")).body.stdout, "moved\n");
    assert.equal((await suite.exec("p1", "cat /etc/kept")).body.stdout, "kept\n", "what runs stays as it is");
    const odd = await wanting("p5", { image, imagePullPolicy: "Sometimes" });
    assert.equal(odd.status, 400);
    for (const name of ["p1", "p2", "p3", "p4"]) await call("DELETE", `/sandboxes/${name}`);
  });

  test("POST /images pulls under a name of its own; agents, jobs and a refusal", async () => {
    addImage(registry, "acme/app:1", { layers: [bottom, top], config });
    const body = { name: "app", resourceType: "sandbox", image: `${registry.host}/acme/app:1` };
    const asked = await call("POST", "/images", { body });
    assert.deepEqual([asked.status, asked.body.build], [200, true], JSON.stringify(asked.body));
    /** The resource, once its status is one of these. */
    const reached = async (path: string, ...statuses: string[]) => {
      let now = (await call("GET", path)).body;
      await eventually(async () => {
        now = (await call("GET", path)).body;
        return statuses.includes(now.status ?? now.metadata.status);
      });
      return now;
    };
    const settled = (name: string) => reached(`/images/_/${name}`, "DEPLOYED", "FAILED");
    const done = await settled("app");
    assert.deepEqual([done.metadata.status, done.spec.tags.length], ["DEPLOYED", 1], JSON.stringify(done));
    assert.ok(done.spec.tags[0].size > 0 && done.spec.tags[0].digest === registry.tags.get("acme/app:1"));
    await served("main/app", "1", done.spec.tags[0].digest);
    await suite.create("named", { runtime: { memory: 256, image: "app:1" } });
    assert.equal((await suite.exec("named", "cat /etc/kept")).body.stdout, "kept\n");
    assert.equal((await call("DELETE", "/images/sandbox/app")).status, 400, "a sandbox uses it");
    const { usedBy } = (await call("GET", "/references?kind=image&name=sandbox/app")).body;
    assert.ok(
      usedBy.some(({ kind }: { kind: string }) => kind === "sandbox"),
      JSON.stringify(usedBy),
    );
    await call("DELETE", "/sandboxes/named");
    await call("POST", "/images", { body: { ...body, name: "none", image: `${registry.host}/acme/none:1` } });
    const failed = await settled("none");
    assert.equal(failed.metadata.status, "FAILED");
    assert.match(failed.metadata.events.at(-1).message, /acme\/none:1 cannot be pulled: .* \(404 not found\)/);
    const agent = { metadata: { name: "nobody" }, spec: { runtime: { memory: 256, image: `${registry.host}/no:1` } } };
    await call("POST", "/agents", { body: agent });
    assert.match((await reached("/agents/nobody", "FAILED")).events.at(-1).message, /no:1 cannot be pulled/);
    await call("DELETE", "/agents/nobody");
    const runtime = { memory: 256, image: `${registry.host}/acme/app:1` };
    assert.equal(
      (await call("POST", "/jobs", { body: { metadata: { name: "once" }, spec: { runtime } } })).status,
      200,
    );
    await reached("/jobs/once", "DEPLOYED");
    const begun = await call("POST", "/jobs/once/executions", { body: { tasks: [{}] } });
    const path = `/jobs/once/executions/${begun.body.metadata?.id ?? begun.body.executionId}`;
    assert.equal((await reached(path, "succeeded", "failed")).status, "succeeded");
    await call("DELETE", "/jobs/once");
  });

  test("the command line pulls, shows and removes by reference", async () => {
    const { url, apiKey, dataDir } = suite.platform();
    const env = { BERTH_URL: url, BERTH_API_KEY: apiKey, BERTH_DATA: join(dataDir, "cli") };
    const berth = (...args: string[]) => runBerth(["image", ...args], { env });
    addImage(registry, "acme/cli:1", { layers: [bottom], config });
    addImage(registry, "acme/cli:2", { layers: [bottom, top], config });
    const [first, second] = [`${registry.host}/acme/cli:1`, `${registry.host}/acme/cli:2`];
    const pulled = await berth("pull", first);
    assert.equal(pulled.code, 0, pulled.stderr);
    assert.match(pulled.stderr, /Pulled 127\.0\.0\.1:\d+\/acme\/cli:1@sha256:/);
    assert.equal((await berth("pull", second)).code, 0);
    const shown = await berth("inspect", second, "-o", "json");
    assert.equal(JSON.parse(shown.stdout).spec.tags[1].digest, registry.tags.get("acme/cli:2"));
    assert.equal((await berth("remove", first)).code, 0);
    assert.equal((await berth("inspect", first)).code, 3);
    const missing = await berth("pull", `${registry.host}/acme/none:7`);
    assert.deepEqual([missing.code, missing.stderr.match(/acme\/none:7 cannot be pulled/g)?.length], [1, 1]);
    const typo = await berth("pull", `${registry.host}/acme/cli:7`);
    assert.equal(typo.code, 1, typo.stderr);
    const slug = JSON.parse(shown.stdout).metadata.name;
    const kept = (await call("GET", `/images/registry/${slug}`)).body;
    const names = kept.spec.tags.map(({ name }: { name: string }) => name);
    assert.deepEqual([kept.metadata.status, names], ["DEPLOYED", ["2"]], "a failed pull leaves no tag");
    assert.equal((await berth("pull", "Not An Image")).code, 2);
    const listed = (await berth("list")).stdout.split("\n");
    assert.match(listed[0] ?? "", /^IMAGE +TAG +SIZE +STATUS +AGE$/);
    const lines = listed.filter((line) => line.includes("/acme/cli "));
    assert.equal(lines.length, 1, listed.join("\n"));
    assert.match(lines[0] ?? "", /^127\.0\.0\.1:\d+\/acme\/cli +2 +\d+\.\d [KM]B +DEPLOYED +\d+[smh]$/);
    assert.ok(!listed.some((line) => line.includes("acme/none ")), "a failed pull leaves no record");
    assert.match(listed.find((line) => line.startsWith("sandbox/none ")) ?? "", /^sandbox\/none +1 +- +FAILED /);
    assert.match((await berth("remove", "none")).stderr, /There is no image 'none'\. There is sandbox\/none:1\./);
    await suite.create("user", { runtime: { memory: 256, image: second } });
    for (const path of [`/images/registry/${slug}`, `/images/registry/${slug}/tags/2`]) {
      const { status, body } = await call("DELETE", path);
      assert.equal(status, 400);
      assert.ok(JSON.stringify(body).includes(`${registry.host}/acme/cli`), JSON.stringify(body));
    }
    const refused = await berth("remove", second);
    assert.ok(refused.stderr.includes(`image '${second}' is in use by sandbox 'user'`), refused.stderr);
    await call("DELETE", "/sandboxes/user");
    const twin = { name: "none", resourceType: "agent", image: `${registry.host}/acme/none:1` };
    assert.equal((await call("POST", "/images", { body: twin })).status, 200);
    const several = await berth("delete", "none");
    assert.match(several.stderr, /Several images are called 'none': .*'agent\/none'/);
    assert.equal((await berth("delete", "agent/none")).code, 0);
    const deleted = await berth("delete", "none");
    assert.equal(deleted.code, 0, deleted.stderr);
    assert.equal((await call("GET", "/images/sandbox/none")).status, 404);
    await eventually(async () =>
      (await call<{ images: string[] }>("DELETE", "/images?dryRun=true")).body.images.includes(second),
    );
    const asked = await berth("prune");
    assert.deepEqual([asked.code, asked.stderr.includes(second)], [2, true], asked.stderr);
    assert.equal((await berth("inspect", second)).code, 0, "where nobody can be asked, nothing is deleted");
    const pruned = await berth("prune", "--yes");
    assert.deepEqual([pruned.code, pruned.stdout.includes(second)], [0, true], pruned.stderr);
    assert.equal((await berth("inspect", second)).code, 3);
  });

  test("what nothing uses is gone from the disk at once", async () => {
    await eventually(async () => (await call("GET", "/jobs")).body.data.length === 0);
    const cleaned = await call("DELETE", "/images");
    assert.equal(cleaned.status, 200, JSON.stringify(cleaned.body));
    assert.deepEqual((await call("GET", "/images")).body, []);
    assert.deepEqual([images("names"), images("layers"), images("notes")], [[], [], []]);
    assert.deepEqual(readdirSync(join(suite.platform().dataDir, "pulls")), []);
  });
});
