import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { dockerSave, type Entry, ociArchive, tar } from "../../../../../test/image-archive.ts";
import { unpackHere } from "../../../../../test/unpack-here.ts";
import { Spawner } from "../calls/spawner.ts";
import type { Arch } from "../calls/stepper.ts";
import { loadImage } from "./image-archive.ts";
import { type ImageStore, openImageStore, removeImage, resolveImage, sweepImages } from "./images.ts";

const skip = process.platform === "linux" ? false : "needs Linux";

interface Place {
  store: ImageStore;
  load: (archive: Buffer, name?: string) => ReturnType<typeof loadImage>;
}

function place(t: TestContext): Place {
  const dir = mkdtempSync(join(tmpdir(), "images-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const spawner = new Spawner(dir, process.arch as Arch);
  const opening = spawner.open();
  t.after(() => spawner.stop());
  const store = openImageStore({ dir: join(dir, "images"), brand: "berth", resolvConf: "" });
  return {
    store,
    load: async (archive, name = "team/app:1") => {
      await opening;
      writeFileSync(join(dir, "archive"), archive);
      const loader = { store, spawner, unpack: unpackHere, identity: { kind: "contained" } as const };
      return loadImage(loader, join(dir, "archive"), name);
    },
  };
}

const lowersOf = (store: ImageStore, name: string): string[] =>
  resolveImage(store, name)?.parts[0]?.lowers.filter((dir) => dir.includes("/layers/")) ?? [];

test("a docker archive becomes layers, topmost first, with its configuration", { skip }, async (t) => {
  const { store, load } = place(t);
  const bottom = tar([
    { path: "etc/", type: "5", mode: 0o755 },
    { path: "etc/keep", content: "1" },
    { path: "etc/gone", content: "2" },
    { path: "bin/run", content: "#!", mode: 0o4755 },
    { path: "bin/again", type: "1", link: "bin/run" },
    { path: "bin/alias", type: "2", link: "/bin/run" },
  ]);
  const top = tar([
    { path: "etc/.wh.gone" },
    { path: "var/.wh..wh..opq" },
    { path: "through", type: "2", link: "/etc" },
    { path: "through/new", content: "3" },
  ]);
  const config = { Env: ["A=b=c", "broken"], WorkingDir: "/app", Entrypoint: ["/bin/run"], Cmd: ["-x"] };
  const image = await load(dockerSave([bottom, top], config));
  assert.deepEqual([image.env, image.workDir, image.argv], [{ A: "b=c" }, "/app", ["/bin/run", "-x"]]);
  assert.equal(image.name, "team/app:1");
  const [upper = "", lower = ""] = lowersOf(store, "team/app:1");
  assert.equal(readFileSync(join(lower, "etc/keep"), "utf8"), "1");
  assert.equal(statSync(join(lower, "bin/run")).mode & 0o7777, 0o4755);
  assert.equal(statSync(join(lower, "bin/again")).ino, statSync(join(lower, "bin/run")).ino);
  const whiteout = lstatSync(join(upper, "etc/gone"));
  assert.ok(whiteout.isCharacterDevice() && whiteout.rdev === 0);
  assert.equal(readFileSync(join(upper, "etc/new"), "utf8"), "3", "a link is followed inside the layer");
  assert.equal(await removeImage(store, "team/app:1", new Set([upper])), true);
  assert.deepEqual([existsSync(upper), existsSync(lower)], [true, false]);
  assert.equal(resolveImage(store, "team/app:1"), null);
  mkdirSync(join(store.dir, ".load-cut-off/layer-0"), { recursive: true });
  const bases = readdirSync(join(store.dir, "base"));
  for (const name of ["old", "in-use"]) mkdirSync(join(store.dir, "base", name, "root"), { recursive: true });
  await sweepImages(store, new Set([join(store.dir, "base/in-use/root")]));
  assert.deepEqual([existsSync(upper), existsSync(join(store.dir, ".load-cut-off"))], [false, false]);
  assert.deepEqual(readdirSync(join(store.dir, "base")).sort(), [...bases, "in-use"].sort());
});

test("a folder that a layer does not list is the one of the layers below", { skip }, async (t) => {
  const { store, load } = place(t);
  const bottom = tar([
    { path: "usr/bin/sh", content: "#!" },
    { path: "bin", type: "2", link: "usr/bin" },
    { path: "tmp/", type: "5", mode: 0o1777 },
    { path: "out", type: "2", link: "/etc" },
  ]);
  const middle = tar([{ path: "other", content: "" }]);
  const top = tar([
    { path: "bin/tool", content: "#!" },
    { path: "tmp/new", content: "" },
    { path: "out/", type: "5", mode: 0o755 },
    { path: "out/alternatives/mine", content: "" },
  ]);
  await load(dockerSave([bottom, middle, top]));
  const [upper = ""] = lowersOf(store, "team/app:1");
  assert.ok(statSync(join(upper, "usr/bin/tool")).isFile(), "a link below is followed");
  assert.equal(existsSync(join(upper, "bin")), false, "and not hidden");
  assert.equal(statSync(join(upper, "tmp")).mode & 0o7777, 0o1777);
  assert.ok(statSync(join(upper, "out/alternatives/mine")).isFile(), "what is listed stands for itself");
  await load(dockerSave([top]), "team/alone:1");
  const [alone = ""] = lowersOf(store, "team/alone:1");
  assert.ok(statSync(join(alone, "bin/tool")).isFile(), "the same layer on nothing is another one");
});

const NO_PYTHON =
  spawnSync("python3", ["--version"]).status !== 0 && "python3 is not installed; install it to run this";

test("an opaque folder carries the mark that an overlay reads", { skip: skip || NO_PYTHON }, async (t) => {
  const { store, load } = place(t);
  await load(dockerSave([tar([{ path: "var/.wh..wh..opq" }])]));
  const [layer = ""] = lowersOf(store, "team/app:1");
  const name = process.getuid?.() === 0 ? "trusted.overlay.opaque" : "user.overlay.opaque";
  const look = `import os,sys; print(os.getxattr(sys.argv[1], sys.argv[2]).decode())`;
  assert.equal(execFileSync("python3", ["-c", look, join(layer, "var"), name], { encoding: "utf8" }).trim(), "y");
});

test("an OCI archive with compressed layers, itself compressed", { skip }, async (t) => {
  const { store, load } = place(t);
  const [one, two] = [tar([{ path: "one", content: "1" }]), tar([{ path: "two", content: "2" }])];
  const archive = ociArchive([gzipSync(one), zstdCompressSync(two)], { Cmd: ["serve"] });
  assert.deepEqual((await load(gzipSync(archive), "oci/app")).argv, ["serve"]);
  const [upper = "", lower = ""] = lowersOf(store, "oci/app:latest");
  assert.deepEqual([readFileSync(join(upper, "two"), "utf8"), readFileSync(join(lower, "one"), "utf8")], ["2", "1"]);
});

test("USER is looked up in the image's own files, the uppermost layer's first", { skip }, async (t) => {
  const { store, load } = place(t);
  const passwd = (content: string) => tar([{ path: "etc/passwd", content }]);
  const bottom = passwd("root:x:0:0::/root:/bin/sh\nold:x:7:8::/old:/bin/sh\n");
  const top = tar([
    { path: "etc/passwd", content: "root:x:0:0::/root:/bin/sh\nnode:x:1000:1001::/home/node:/bin/sh\n" },
    { path: "etc/group", content: "staff:x:50:\n" },
  ]);
  const node = { uid: 1000, gid: 1001, home: "/home/node" };
  const cases: [string, object | undefined | RegExp][] = [
    ["", undefined],
    ["root", undefined],
    ["0:0", undefined],
    ["node", node],
    ["1000", node],
    ["node:staff", { ...node, gid: 50 }],
    ["node:12", { ...node, gid: 12 }],
    ["4242", { uid: 4242, gid: 0, home: "/" }],
    ["old", /'old' is not in its \/etc\/passwd/],
    ["node:nobody", /group 'nobody'/],
    ["99999", /above 65535/],
  ];
  for (const [user, expected] of cases) {
    const loading = load(dockerSave([bottom, top], { User: user }), "team/user:1");
    if (expected instanceof RegExp) await assert.rejects(loading, { code: "bad_request", message: expected });
    else assert.deepEqual((await loading).user, expected, user);
  }
  assert.deepEqual(resolveImage(store, "team/user:1")?.user, { uid: 4242, gid: 0, home: "/" });
  const outside = tar([{ path: "etc", type: "2", link: "/etc" }]);
  await assert.rejects(load(dockerSave([outside], { User: "daemon" })), { message: /'daemon' is not in its/ });
});

const hostile: Record<string, Entry[]> = {
  "a name with ..": [{ path: "../../escaped", content: "x" }],
  "a name with .. in the middle": [{ path: "a/../../escaped", content: "x" }],
  "a device": [{ path: "disk", type: "4" }],
  "a hard link to the host": [{ path: "shadow", type: "1", link: "/etc/shadow" }],
  "a hard link through a symbolic link": [
    { path: "etc", type: "2", link: "../../../../../../etc" },
    { path: "x", type: "1", link: "etc/shadow" },
  ],
  "links in a circle": [
    { path: "a", type: "2", link: "b" },
    { path: "b", type: "2", link: "a" },
    { path: "a/x", content: "x" },
  ],
};
for (const [what, entries] of Object.entries(hostile)) {
  test(`refused: ${what}`, { skip }, async (t) => {
    const { store, load } = place(t);
    await assert.rejects(load(dockerSave([tar(entries)])), { code: "bad_request" });
    assert.equal(existsSync(join(store.dir, "escaped")), false);
    assert.equal(resolveImage(store, "team/app:1"), null);
  });
}

test("a symbolic link out of the layer leads nowhere but inside it", { skip }, async (t) => {
  const { store, load } = place(t);
  const outside = mkdtempSync(join(tmpdir(), "outside-"));
  t.after(() => rmSync(outside, { recursive: true }));
  await load(
    dockerSave([
      tar([
        { path: "out", type: "2", link: outside },
        { path: "out/file", content: "x" },
        { path: "up", type: "2", link: "../../../../.." },
        { path: "up/file", content: "y" },
      ]),
    ]),
  );
  assert.equal(existsSync(join(outside, "file")), false);
  const [layer = ""] = lowersOf(store, "team/app:1");
  assert.equal(readFileSync(join(layer, outside, "file"), "utf8"), "x");
  assert.equal(readFileSync(join(layer, "file"), "utf8"), "y");
});

const broken: Record<string, Buffer> = {
  "no archive": Buffer.from("hello"),
  "an empty file": Buffer.alloc(0),
  "no manifest": tar([{ path: "x", content: "y" }]),
  "a manifest that is not JSON": tar([{ path: "manifest.json", content: "{" }]),
  "a manifest of another shape": tar([{ path: "manifest.json", content: "[{}]" }]),
  "a missing layer": tar([
    { path: "manifest.json", content: JSON.stringify([{ Config: "c", Layers: ["l"] }]) },
    { path: "c", content: "{}" },
  ]),
  "a cut-off archive": dockerSave([tar([{ path: "x", content: "y".repeat(5000) }])]).subarray(0, 4000),
};
for (const [what, archive] of Object.entries(broken)) {
  test(`refused: ${what}`, { skip }, async (t) => {
    await assert.rejects(place(t).load(archive), { code: "bad_request" });
  });
}

test("a layer that is not what its description says is refused", { skip }, async (t) => {
  const good = dockerSave([tar([{ path: "x", content: "good" }])]);
  const at = good.lastIndexOf("good");
  good.write("evil", at);
  await assert.rejects(place(t).load(good), { code: "bad_request", message: /digest/ });
});

// Prepared workloads are kept by the digest of their image, so two images of other files must not share one.
test("the digest of an image covers every layer", { skip }, async (t) => {
  const { load } = place(t);
  const known = tar([{ path: "known", content: "1" }]);
  const added = tar([{ path: "added", content: "2" }]);
  await assert.rejects(load(dockerSave([known, added], {}, {}, [known])), /description/);
  const one = await load(ociArchive([known]), "team/one:1");
  const two = await load(ociArchive([added]), "team/two:1");
  assert.notEqual(one.digest, two.digest);
});

test("an archive that would fill the disk is refused before it does", { skip }, async (t) => {
  const zeros = Buffer.alloc(72 * 1024 * 1024);
  const inLayer = ociArchive([gzipSync(tar([{ path: "zeros", content: zeros }]))]);
  await assert.rejects(place(t).load(inLayer), { code: "bad_request", message: /larger than an image may be/ });
  const whole = gzipSync(dockerSave([tar([{ path: "zeros", content: zeros }])]));
  await assert.rejects(place(t).load(whole), { code: "bad_request", message: /larger than an image may be/ });
});
