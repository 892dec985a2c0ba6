/** Images that arrive as files: run on this machine's own driver, refused when hostile, swept when nobody names them. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { sweepImages } from "../../src/kinds/image/sweep.ts";
import type { Deps } from "../../src/kinds/port.ts";
import { HOUR_MS } from "../../src/lib/time/clock.ts";
import { runBerth } from "../berth-process.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { dockerSave, type Entry, ociArchive, tar } from "../image-archive.ts";
import { usersMissing } from "../local/machine.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";
import { eventually } from "../sandboxd-harness.ts";

const load = async (platform: TestPlatform, place: string, archive: Buffer | ReadableStream) => {
  const answer = await fetch(`${platform.url}/v0/images/${place}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${platform.apiKey}`, "content-type": "application/x-tar" },
    body: archive,
    duplex: "half",
  } as RequestInit);
  return { status: answer.status, body: (await answer.json()) as Answer["body"] };
};

/** Programs of this machine that need the C library and nothing else; the image brings none. */
const program = (name: string): Entry => ({ path: `bin/${name}`, content: readFileSync(`/bin/${name}`), mode: 0o755 });

const bottom = tar([
  program("sh"),
  program("cat"),
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
const config = { Env: ["GREETING=from the image", "PATH=/bin"], WorkingDir: "/work", Cmd: ["cat", "/etc/kept"] };
const image = dockerSave([bottom, top], config);

describe("an image from a file", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const folder = mkdtempSync(join(tmpdir(), "berth-images-"));
  before(() => suite.start({ standby_after: "60", image_max: "8" }));
  after(async () => {
    await suite.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const call: TestPlatform["call"] = (...args) => suite.platform().call(...args);
  const leftovers = () => readdirSync(join(suite.platform().dataDir, "blobs/temp"));

  test("its layers, whiteouts and configuration make a sandbox", async () => {
    const made = await load(suite.platform(), "sandbox/tiny/tags/1", image);
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.metadata.status, "DEPLOYED");
    const { name, size, ...tag } = made.body.spec.tags[0];
    assert.deepEqual([name, Object.keys(tag)], ["1", ["digest", "createdAt", "updatedAt", "status"]]);
    assert.ok(size > 100_000);
    await suite.create("tiny", { runtime: { memory: 256, image: "tiny:1" } });
    const ran = await suite.exec("tiny", "echo $GREETING; pwd; cat /etc/kept /data/new; cat /etc/removed /data/old");
    assert.deepEqual(
      [ran.body.stdout, ran.body.stderr.split("\n").length],
      ["from the image\n/work\nkept\nnew\n", 3],
      JSON.stringify(ran.body),
    );
    assert.equal((await call("DELETE", "/images/sandbox/tiny")).status, 400, "a sandbox runs it");
    assert.deepEqual(leftovers(), []);
  });

  test("its USER runs the commands and owns what is written; one whom it does not know is refused", async (t) => {
    const people = tar([
      { path: "etc/passwd", content: "root:x:0:0::/root:/bin/sh\nnode:x:1000:1001::/home/node:/bin/sh\n" },
      { path: "home/", type: "5", mode: 0o777 },
    ]);
    const made = await load(suite.platform(), "sandbox/of-node/tags/1", dockerSave([bottom, people], { User: "node" }));
    assert.equal(made.status, 200, JSON.stringify(made.body));
    await t.test("its USER", { skip: usersMissing }, async () => {
      await suite.create("of-node", { runtime: { memory: 256, image: "of-node:1" } });
      const who = `echo $HOME; while read -r key a rest; do case $key in Uid:|Gid:) echo $key $a;; esac; done < /proc/self/status`;
      assert.equal((await suite.exec("of-node", who)).body.stdout, "/home/node\nUid: 1000\nGid: 1001\n");
      assert.equal((await suite.exec("of-node", "echo x > /etc/mine")).body.exitCode, 2, "it is not root");
      const envs = [
        { name: "BL_SANDBOX_USER_ENABLED", value: "true" },
        { name: "BL_SANDBOX_USER", value: "root" },
      ];
      await suite.create("of-root", { runtime: { memory: 256, image: "of-node:1", envs } });
      assert.match((await suite.exec("of-root", who)).body.stdout, /Uid: 0\n/, "the sandbox's owner may say otherwise");
    });
    const nobody = await load(suite.platform(), "sandbox/of-nobody/tags/1", dockerSave([bottom], { User: "ghost" }));
    assert.equal(nobody.status, 400);
    assert.match(JSON.stringify(nobody.body), /USER 'ghost' is not in its \/etc\/passwd/);
    assert.deepEqual(leftovers(), []);
  });

  test("what is not there is refused with what is, and others see nothing of it", async () => {
    const wanting = (reference: string, workspace = "main") =>
      call("POST", "/sandboxes", {
        workspace,
        body: { metadata: { name: "wants" }, spec: { runtime: { memory: 256, image: reference } } },
      });
    const latest = await wanting("tiny");
    assert.deepEqual([latest.status, latest.body.code], [400, "INVALID_IMAGE"]);
    assert.ok(latest.body.details.supported_images.includes("sandbox/tiny:1"));
    const driverName = (await suite.platform().app.store.resources.listNamed("main", "image", "tiny"))[0]?.spec
      .tags as [{ loaded: string }];
    await call("POST", "/workspaces", { body: { name: "others" } });
    for (const [reference, workspace] of [
      ["sandbox/tiny:1", "others"],
      [driverName[0].loaded, "others"],
      [driverName[0].loaded, "main"],
    ]) {
      const { status, body } = await wanting(reference ?? "", workspace);
      assert.equal(status, 400, reference);
      const shown = JSON.stringify(body.details.supported_images);
      assert.deepEqual([shown.includes("tiny"), shown.includes("loaded/")], [workspace === "main", false]);
    }
    await call("DELETE", "/workspaces/others");
  });

  test("by command line, compressed, under another tag; then anew under the same", async () => {
    writeFileSync(join(folder, "My_Tool.tar.gz"), gzipSync(ociArchive([gzipSync(bottom), gzipSync(top)], config)));
    const { url, apiKey } = suite.platform();
    const berth = (args: string[]) =>
      runBerth(args, { env: { BERTH_URL: url, BERTH_API_KEY: apiKey, BERTH_DATA: folder } });
    const loaded = await berth(["image", "load", join(folder, "My_Tool.tar.gz")]);
    assert.equal(loaded.code, 0, loaded.stderr);
    assert.match(loaded.stderr, /sending \d+ MB\n.*unpacks/s);
    assert.match(loaded.stdout, /my-tool/);
    assert.equal((await berth(["image", "load", join(folder, "My_Tool.tar.gz"), "my-tool:2"])).code, 0);
    assert.equal((await berth(["image", "load", join(folder, "nothing.tar")])).code, 2);
    await suite.create("tool", { runtime: { memory: 256, image: "sandbox/my-tool" } });
    assert.equal((await suite.exec("tool", "cat /etc/kept")).body.stdout, "kept\n");
    const tags = (await call("GET", "/images/sandbox/my-tool")).body.spec.tags;
    assert.deepEqual(
      tags.map(({ name }: { name: string }) => name),
      ["latest", "2"],
    );
  });

  test("hostile archives are refused and leave nothing", async () => {
    const cases: Record<string, Buffer> = {
      "no archive": Buffer.from("hello"),
      "an escape by name": dockerSave([tar([{ path: "../../escaped", content: "x" }])]),
      "an escape by link": dockerSave([tar([{ path: "x", type: "1", link: "/etc/shadow" }])]),
      "a device": dockerSave([tar([{ path: "disk", type: "4" }])]),
      "a bomb": ociArchive([gzipSync(tar([{ path: "zeros", content: Buffer.alloc(72 * 1024 * 1024) }]))]),
      "another machine's": dockerSave([bottom], {}, { architecture: "s390x" }),
    };
    for (const [what, archive] of Object.entries(cases)) {
      const { status, body } = await load(suite.platform(), "sandbox/evil/tags/1", archive);
      assert.equal(status, 400, `${what}: ${JSON.stringify(body)}`);
    }
    assert.equal((await call("GET", "/images/sandbox/evil")).status, 404);
    for (const place of ["sandbox/Evil/tags/1", "sandbox/evil/tags/..%2Fx", "SANDBOX/evil/tags/1"])
      assert.equal((await load(suite.platform(), place, image)).status, 400, place);
    assert.deepEqual(leftovers(), []);
  });

  test("an endless archive is cut off at the limit, an unknown sender before it", async () => {
    let sent = 0;
    const endless = () =>
      new ReadableStream({
        pull(controller) {
          sent += 1;
          controller.enqueue(new Uint8Array(1024 * 1024));
        },
      });
    const cut = await load(suite.platform(), "sandbox/endless/tags/1", endless()).catch(() => null);
    assert.ok(cut === null || cut.status === 413, JSON.stringify(cut));
    assert.ok(sent < 40, `${sent} MB were taken`);
    sent = 0;
    const stranger = { ...suite.platform(), apiKey: "nobody" };
    const refused = await load(stranger, "sandbox/endless/tags/1", endless()).catch(() => null);
    assert.ok(refused === null || refused.status === 401);
    assert.ok(sent < 40, `${sent} MB were taken`);
    assert.equal((await call("GET", "/images/sandbox/endless")).status, 404);
    // Who was cut off may know it before everything is cleared away.
    await eventually(() => leftovers().length === 0, "nothing is left");
  });
});

test("what no tag leads to is removed from the machine after a while", async () => {
  const machine = new FakeMachine({ images: ["service/base-image:latest"] });
  const driver = fakeDriver(machine);
  await using platform = await startTestPlatform({ driver });
  const { store } = platform.app;
  const loadedImages = () => [...machine.images.keys()].filter((name) => name.startsWith("loaded/"));
  for (const place of ["sandbox/tool/tags/1", "sandbox/tool/tags/1", "sandbox/tool/tags/2"])
    assert.equal((await load(platform, place, image)).status, 200);
  assert.equal(loadedImages().length, 3);
  const sweep = (laterMs: number) =>
    sweepImages(
      { store, driver, clock: { now: () => Date.now() + laterMs } } as unknown as Deps,
      AbortSignal.timeout(60_000),
    );
  await sweep(0);
  assert.equal(loadedImages().length, 3, "what is new may not be recorded yet");
  await sweep(HOUR_MS);
  assert.equal(loadedImages().length, 2);
  await platform.call("DELETE", "/images/sandbox/tool");
  await sweep(HOUR_MS);
  assert.deepEqual(loadedImages(), []);
});
