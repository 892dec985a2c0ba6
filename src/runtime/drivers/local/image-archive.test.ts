import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { loadImage } from "./image-archive.ts";
import { type ImageStore, openImageStore, removeImage, resolveImage } from "./images.ts";
import { Spawner } from "./spawner.ts";
import type { Arch } from "./stepper.ts";

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
      return loadImage(store, spawner, join(dir, "archive"), name);
    },
  };
}

interface Entry {
  path: string;
  type?: string;
  link?: string;
  content?: string | Buffer;
  mode?: number;
}

/** Writes what no tar tool would agree to write. */
function tar(entries: Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, type = "0", link = "", content = "", mode = 0o644 }) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(path, 0);
    header.write(mode.toString(8).padStart(7, "0"), 100);
    header.write("0000000\x000000000\0", 108);
    header.write(body.length.toString(8).padStart(11, "0"), 124);
    header.write("00000000000", 136);
    header.write(" ".repeat(8), 148);
    header.write(type, 156);
    header.write(link, 157);
    header.write("ustar\x0000", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** What `docker save` writes. */
function dockerSave(layers: Buffer[], config: object = {}): Buffer {
  const description = JSON.stringify({
    config,
    rootfs: { diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) },
  });
  const manifest = [{ Config: "config.json", Layers: layers.map((_, index) => `${index}/layer.tar`) }];
  return tar([
    { path: "config.json", content: description },
    { path: "manifest.json", content: JSON.stringify(manifest) },
    ...layers.map((content, index) => ({ path: `${index}/layer.tar`, content })),
  ]);
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
  assert.equal(removeImage(store, "team/app:1", new Set([upper])), true);
  assert.deepEqual([existsSync(upper), existsSync(lower)], [true, false]);
  assert.equal(resolveImage(store, "team/app:1"), null);
});

test("an opaque folder carries the mark that an overlay reads", { skip }, async (t) => {
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
  const blobs = new Map<string, Buffer>();
  const blob = (content: Buffer): { digest: string } => {
    blobs.set(`blobs/sha256/${sha256(content)}`, content);
    return { digest: `sha256:${sha256(content)}` };
  };
  const config = blob(Buffer.from(JSON.stringify({ config: { Cmd: ["serve"] }, rootfs: {} })));
  const layers = [blob(gzipSync(one)), blob(zstdCompressSync(two))];
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const foreign = { ...blob(Buffer.from("{}")), platform: { architecture: "s390x" } };
  const manifest = { ...blob(Buffer.from(JSON.stringify({ config, layers }))), platform: { architecture } };
  const nested = blob(Buffer.from(JSON.stringify({ manifests: [foreign, manifest] })));
  const index = { path: "index.json", content: JSON.stringify({ manifests: [nested] }) };
  const archive = tar([index, ...[...blobs].map(([path, content]) => ({ path, content }))]);
  assert.deepEqual((await load(gzipSync(archive), "oci/app")).argv, ["serve"]);
  const [upper = "", lower = ""] = lowersOf(store, "oci/app:latest");
  assert.deepEqual([readFileSync(join(upper, "two"), "utf8"), readFileSync(join(lower, "one"), "utf8")], ["2", "1"]);
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
