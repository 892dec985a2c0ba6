import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { need } from "../capabilities/need.ts";
import type { Part } from "./harness.ts";

export const unpacking: Part = (get) => {
  test("an archive is unpacked into a folder and nowhere else", async (t) => {
    const { driver } = get();
    const unpacking = await need(driver, "unpacking");
    const dir = mkdtempSync(join(tmpdir(), "unpack-"));
    t.after(() => rmSync(dir, { recursive: true }));
    const [archive, folder] = [join(dir, "archive"), join(dir, "folder")];
    const limits = { entriesMax: 10, bytesMax: 10_000 };
    const send = (...entries: [path: string, type: string, body: string][]) => {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder);
      writeFileSync(archive, gzipSync(plainTar(entries)));
      return unpacking.unpack(archive, folder, limits);
    };
    assert.deepEqual(await send(["a/b.txt", "0", "hello"], ["a/", "5", ""], ["c", "0", "!"]), { sizeBytes: 6 });
    assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), ["a", "a/b.txt", "c"]);
    assert.equal(readFileSync(join(folder, "a/b.txt"), "utf8"), "hello");
    assert.equal(statSync(join(folder, "a/b.txt")).uid, process.getuid?.());
    const refusals: [path: string, type: string, body: string][] = [
      ["../outside", "0", "x"],
      ["link", "2", ""],
      ["device", "4", ""],
      ["large", "0", "x".repeat(10_001)],
    ];
    for (const entry of refusals) await assert.rejects(send(entry), { code: "bad_request" }, entry[0]);
    await assert.rejects(unpacking.unpack(import.meta.filename, folder, limits), { code: "bad_request" });
    assert.deepEqual(readdirSync(dir).sort(), ["archive", "folder"]);
  });
};

/** The least that is a tar. */
function plainTar(entries: [path: string, type: string, body: string][]): Buffer {
  const blocks = entries.flatMap(([path, type, body]) => {
    const header = Buffer.alloc(512);
    header.write(path, 0);
    header.write("0000644", 100);
    header.write(body.length.toString(8).padStart(11, "0"), 124);
    header.write(`        ${type}/etc/passwd`, 148);
    header.write(
      header
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(7, "0"),
      148,
    );
    header[155] = 0x20;
    return [header, Buffer.from(body), Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
