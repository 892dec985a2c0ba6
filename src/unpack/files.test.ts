import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { type Entry, tar as tarOf } from "../../test/image-archive.ts";
import { unpackHere } from "../../test/unpack-here.ts";
import { type Member, zip } from "../../test/zip-archive.ts";
import type { FilesLimits } from "./files.ts";

const home = mkdtempSync(join(tmpdir(), "archives-"));
after(() => rmSync(home, { recursive: true }));

const LIMITS = { entriesMax: 1000, bytesMax: 10_000_000 };

let count = 0;
const unpack = async (archive: Buffer, limits: FilesLimits = LIMITS): Promise<string> => {
  count += 1;
  const file = join(home, `${count}.archive`);
  writeFileSync(file, archive);
  const folder = mkdtempSync(join(home, "out-"));
  await unpackHere({ work: { kind: "files", limits }, archive: file, target: folder });
  return folder;
};

describe("an archive", () => {
  const members = [
    { path: "a/run.sh", content: "#!/bin/sh\n", mode: 0o100755 },
    { path: "b.txt", content: "x".repeat(9999) },
  ];
  for (const [name, archive] of [
    ["zip", zip(members)],
    ["zip64", zip(members, "zip64")],
    ["tar", tar(members)],
    ["tar.gz", gzipSync(tar(members))],
  ] as const) {
    test(`as ${name} is unpacked, with the right to run`, async () => {
      const folder = await unpack(archive);
      assert.equal(readFileSync(join(folder, "a/run.sh"), "utf8"), "#!/bin/sh\n");
      assert.equal(statSync(join(folder, "a/run.sh")).mode & 0o777, 0o755);
      assert.equal(readFileSync(join(folder, "b.txt"), "utf8").length, 9999);
      assert.equal(statSync(join(folder, "b.txt")).mode & 0o777, 0o644);
    });
  }

  const hostile: [string, Buffer, RegExp][] = [
    ["leads out", zip([{ path: "../up.txt", content: "x" }]), /leads out/],
    ["leads out in the middle", tar([{ path: "a/../../up.txt", content: "x" }]), /leads out/],
    ["is absolute", zip([{ path: "/etc/x", content: "x" }]), /absolute/],
    ["uses backslashes", zip([{ path: "..\\up.txt", content: "x" }]), /forbidden character/],
    ["holds a symbolic link", zip([{ path: "link", content: "/etc", mode: 0o120777 }]), /symlink/],
    ["holds a link in a tar", tar([{ path: "link" }], "2"), /symlink/],
    ["holds a device", tar([{ path: "disk" }], "4"), /device/],
    [
      "holds a name twice",
      zip([
        { path: "a", content: "1" },
        { path: "a", content: "2" },
      ]),
      /twice/,
    ],
    [
      "makes a file a folder",
      zip([
        { path: "a", content: "1" },
        { path: "a/b", content: "2" },
      ]),
      /both/,
    ],
    ["lies about a size", zip([{ path: "a", content: "12345", claims: { size: 2 } }]), /too many bytes/],
    ["lies about a sum", zip([{ path: "a", content: "12345", claims: { sum: 1 } }]), /damaged/],
    ["is encrypted", zip([{ path: "a", content: "1", claims: { flags: 1 } }]), /encrypted/],
    ["is cut off", zip(members).subarray(0, 80), /truncated/],
    ["is broken gzip", Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]), /compression/],
    ["is something else", Buffer.from("hello, I am not an archive".repeat(40)), /cannot be read/],
  ];
  for (const [what, archive, reason] of hostile) {
    test(`that ${what} is refused`, () => assert.rejects(unpack(archive), { code: "bad_request", message: reason }));
  }

  test("that inflates without end, or has too many entries, is refused", async () => {
    const bomb = zip([{ path: "bomb", content: Buffer.alloc(4 * 1024 * 1024) }]);
    await assert.rejects(unpack(bomb, { entriesMax: 10, bytesMax: 1024 }), { message: /too large/ });
    await assert.rejects(unpack(zip(members), { entriesMax: 1, bytesMax: 1e9 }), { message: /entries/ });
  });
});

describe("a tar whose links are taken", () => {
  const WITH_LINKS = { ...LIMITS, links: true };
  const file = { path: "./dir/file", content: "own" };

  test("has symbolic links as they are, and hard links to its own files", async () => {
    const links = [
      { path: "./out", type: "2", link: "/etc/passwd" },
      { path: "./dir/up", type: "2", link: "../../../.." },
      { path: "./twice", type: "1", link: "./dir/file" },
    ];
    const folder = await unpack(tarOf([file, ...links]), WITH_LINKS);
    assert.deepEqual(
      ["out", "dir/up"].map((name) => readlinkSync(join(folder, name))),
      ["/etc/passwd", "../../../.."],
    );
    assert.equal(statSync(join(folder, "twice")).ino, statSync(join(folder, "dir/file")).ino);
  });

  const hostile: [string, Entry[], RegExp][] = [
    [
      "writes through its link",
      [
        { path: "a", type: "2", link: "/tmp" },
        { path: "a/b", content: "x" },
      ],
      /both/,
    ],
    [
      "writes to its link",
      [
        { path: "a", type: "2", link: "/tmp/x" },
        { path: "a", content: "x" },
      ],
      /twice/,
    ],
    ["puts a link over a file", [file, { path: "dir/file", type: "2", link: "/etc" }], /twice/],
    ["puts a link over a folder", [file, { path: "dir", type: "2", link: "/etc" }], /twice/],
    ["links to a file outside", [{ path: "a", type: "1", link: "/etc/passwd" }], /nowhere/],
    ["links to a file above", [{ path: "a", type: "1", link: "../../etc/passwd" }], /leads out/],
    [
      "links through a link",
      [
        { path: "a", type: "2", link: "/etc" },
        { path: "b", type: "1", link: "a/passwd" },
      ],
      /nowhere/,
    ],
    [
      "links to a link",
      [
        { path: "a", type: "2", link: "/etc/passwd" },
        { path: "b", type: "1", link: "a" },
      ],
      /nowhere/,
    ],
    ["links to a folder", [file, { path: "b", type: "1", link: "dir" }], /nowhere/],
    ["has a link without a target", [{ path: "a", type: "2", link: "" }], /nowhere/],
    ["has a device", [{ path: "a", type: "3" }], /device/],
    ["has a pipe", [{ path: "a", type: "6" }], /fifo/],
  ];
  for (const [what, entries, reason] of hostile)
    test(`and that ${what} is refused`, () =>
      assert.rejects(unpack(tarOf(entries), WITH_LINKS), { code: "bad_request", message: reason }));

  test("counts a hard link like its file, since a copy may make two files of it", async () => {
    const entries = [file, { path: "twice", type: "1", link: "dir/file" }];
    await assert.rejects(unpack(tarOf(entries), { ...WITH_LINKS, bytesMax: 5 }), { message: /too large/ });
    await unpack(tarOf(entries), { ...WITH_LINKS, bytesMax: 6 });
  });
});

function tar(members: readonly Member[], type = "0"): Buffer {
  const blocks = members.flatMap(({ path, content = "", mode = 0o100644 }) => {
    const data = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(path, 0);
    header.write(`${(mode & 0o777).toString(8).padStart(7, "0")}\0`, 100);
    header.write(`${data.length.toString(8).padStart(11, "0")}\0`, 124);
    header.write(`        ${type}`, 148);
    header.write("/etc", 157);
    header.write("ustar\0", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, data, Buffer.alloc((512 - (data.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
