/**
 * Questions about the files of a drive that a mount of another machine never asks, and workloads that exchange files
 * while they are asked about. None of them reaches anything outside of the folder that the mount shows.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import * as fs from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FrameReader, frameOf } from "../../src/drivefs/frames.ts";
import { Channel } from "../../src/drivefs/fuse/channel.ts";
import { OpenFolders } from "../../src/drivefs/fuse/open-folders.ts";
import { type DescriptorShare, DescriptorShares } from "../../src/drivefs/owner/descriptor-shares.ts";
import { FileSession } from "../../src/drivefs/owner/file-session.ts";
import { serveMount } from "../../src/drivefs/owner/serve-mount.ts";
import type { Answer, AskName, Asks } from "../../src/drivefs/wire.ts";

const OWN = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

interface Room extends AsyncDisposable {
  files: string;
  outside: string;
  session: FileSession;
  root: string;
  ask<Name extends AskName>(name: Name, args: Asks[Name], body?: Buffer): Promise<Answer>;
}

interface RoomOptions {
  path?: string;
  readOnly?: boolean;
  share?: DescriptorShare;
}

async function openRoom({ path = "/", readOnly = false, share }: RoomOptions = {}): Promise<Room> {
  const dir = fs.mkdtempSync(join(tmpdir(), "berth-drive-attack-"));
  const [files, outside] = [join(dir, "files"), join(dir, "outside")];
  for (const each of [files, outside]) fs.mkdirSync(each);
  fs.writeFileSync(join(outside, "secret"), "secret", { mode: 0o600 });
  fs.mkdirSync(join(files, "part"));
  const session = await FileSession.open(files, path, readOnly, share);
  const ask: Room["ask"] = async (name, args, body = Buffer.alloc(0)) => session.answer(name, args, body);
  const { file: root = "" } = await ask("root", {});
  return {
    ...{ files, outside, session, root, ask },
    async [Symbol.asyncDispose]() {
      await session.close();
      fs.rmSync(dir, { recursive: true, force: true });
    },
  };
}

const refuses = (work: Promise<unknown>, ...codes: string[]): Promise<void> =>
  assert.rejects(work, (error: NodeJS.ErrnoException) => codes.includes(String(error.code)));

test("a name is one name, whatever its bytes", async () => {
  await using room = await openRoom({ path: "/part" });
  fs.writeFileSync(join(room.files, "beside"), "of another part");
  const at = { folder: [], up: room.root };
  for (const name of ["", ".", "..", "../beside", "a/b", "/etc/passwd", "a\0b", "\u0100", 7 as unknown as string]) {
    await refuses(room.ask("lookup", { ...at, name }), "EINVAL");
    await refuses(room.ask("create", { ...at, name, mode: 0o644, ...OWN, flags: 1 }), "EINVAL");
    await refuses(room.ask("rename", { from: { ...at, name: "x" }, to: { ...at, name } }), "EINVAL");
  }
  await refuses(room.ask("lookup", { ...at, name: "n".repeat(256) }), "ENAMETOOLONG");
  await refuses(room.ask("lookup", { folder: [".."], up: "1-1", name: "beside" }), "EINVAL");
  await refuses(room.ask("lookup", { folder: Array(5000).fill("a"), up: "1-1", name: "x" }), "ENAMETOOLONG");
  await refuses(room.ask("lookup", { folder: "etc" as unknown as string[], up: room.root, name: "x" }), "EINVAL");
  await refuses(room.ask("nothing" as AskName, {}), "ENOSYS");
  for (const name of ["constructor", "__proto__", "toString"]) await refuses(room.ask(name as AskName, {}), "ENOSYS");
});

test("no link is followed, neither on the way nor at its end", async () => {
  await using room = await openRoom();
  const at = { folder: [], up: room.root };
  fs.symlinkSync(room.outside, join(room.files, "way"));
  fs.symlinkSync(join(room.outside, "secret"), join(room.files, "end"));
  const way = await room.ask("lookup", { ...at, name: "way" });
  await refuses(room.ask("lookup", { folder: ["way"], up: way.file ?? "", name: "secret" }), "ESTALE");
  const { file: id = "" } = await room.ask("lookup", { ...at, name: "end" });
  await refuses(room.ask("open", { ...at, name: "end", id, flags: 0 }), "EPERM", "ELOOP");
  await refuses(room.ask("openFolder", { ...at, name: "way", id: way.file ?? "" }), "EPERM", "ENOTDIR");
  for (const changes of [{ mode: 0o777 }, { size: 0 }])
    await refuses(room.ask("change", { ...at, name: "end", id, changes }), "EPERM");
  await refuses(room.ask("create", { ...at, name: "end", mode: 0o644, ...OWN, flags: 1 }), "EEXIST");
  await refuses(room.ask("makeFolder", { ...at, name: "way", mode: 0o755, ...OWN }), "EEXIST");
  assert.equal(fs.readFileSync(join(room.outside, "secret"), "utf8"), "secret");
  assert.equal(fs.statSync(join(room.outside, "secret")).mode & 0o777, 0o600);
});

test("a file that a workload exchanges for a link meanwhile is not the one that was asked about", async () => {
  await using room = await openRoom();
  const at = { folder: [], up: room.root };
  const swapped = join(room.files, "swapped");
  for (let round = 0; round < 50; round++) {
    fs.rmSync(swapped, { force: true });
    fs.writeFileSync(swapped, "mine");
    const { file: id = "" } = await room.ask("lookup", { ...at, name: "swapped" });
    const change = room.ask("change", { ...at, name: "swapped", id, changes: { mode: 0o666 } }).catch(() => null);
    const opened = room.ask("open", { ...at, name: "swapped", id, flags: 0 }).catch(() => null);
    fs.rmSync(swapped);
    fs.symlinkSync(join(room.outside, "secret"), swapped);
    await change;
    const fh = (await opened)?.fh;
    if (fh !== undefined) {
      const { body } = await room.ask("read", { fh, offset: 0, bytes: 100 });
      assert.equal(body?.toString(), "mine");
      await room.ask("close", { fh });
    }
  }
  assert.equal(fs.statSync(join(room.outside, "secret")).mode & 0o777, 0o600);
});

test("a mount that reads does nothing else, and sizes are bounded", async () => {
  await using room = await openRoom({ readOnly: true });
  const at = { folder: [], up: room.root };
  fs.writeFileSync(join(room.files, "file"), "kept");
  const { file: id = "" } = await room.ask("lookup", { ...at, name: "file" });
  const file = { ...at, name: "file", id };
  const made = { ...at, name: "new", mode: 0o644, ...OWN };
  const writes: Promise<unknown>[] = [
    room.ask("change", { ...file, changes: { size: 0 } }),
    room.ask("makeFile", made),
    room.ask("makeFolder", made),
    room.ask("makeLink", { ...made, target: "x" }),
    room.ask("hardLink", { file, to: { ...at, name: "new" } }),
    room.ask("remove", { ...at, name: "file" }),
    room.ask("removeFolder", { ...at, name: "part" }),
    room.ask("rename", { from: { ...at, name: "file" }, to: { ...at, name: "new" } }),
    room.ask("create", { ...made, flags: 1 }),
    ...[1, 2].map((flags) => room.ask("open", { ...file, flags })),
  ];
  for (const write of writes) await refuses(write, "EROFS");
  const { fh = 0 } = await room.ask("open", { ...file, flags: 0 });
  await refuses(room.ask("write", { fh, offset: 0 }, Buffer.from("x")), "EROFS");
  for (const [offset, bytes] of [
    [-1, 1],
    [0, -1],
    [0, 2 ** 30],
    [0.5, 1],
    [0, Number.NaN],
  ] as const)
    await refuses(room.ask("read", { fh, offset, bytes }), "EINVAL");
  await refuses(room.ask("read", { fh: 999, offset: 0, bytes: 1 }), "EBADF");
  await refuses(room.ask("names", { fh }), "EBADF");
  assert.deepEqual(fs.readdirSync(room.files).sort(), ["file", "part"]);
});

test("open files of one workspace leave descriptors to the server and to others, and come back", async () => {
  const shares = new DescriptorShares(100);
  const opened = async (workspace: string) => {
    const room = await openRoom({ share: shares.of(workspace) });
    for (let n = 0; n < 40; n++) fs.mkdirSync(join(room.files, `folder${n}`));
    fs.writeFileSync(join(room.files, "file"), "");
    const at = { folder: [], up: room.root };
    const { file: id = "" } = await room.ask("lookup", { ...at, name: "file" });
    const open = () => room.ask("open", { ...at, name: "file", id, flags: 0 });
    const enter = async (name: string): Promise<void> => {
      const { file: up = "" } = await room.ask("lookup", { ...at, name });
      await refuses(room.ask("lookup", { folder: [name], up, name: "nothing" }), "ENOENT");
    };
    return { room, open, enter, openAll: () => openUntilRefused(open) };
  };
  for (let round = 0; round < 2; round++) {
    await using greedy = new AsyncDisposableStack();
    const parts = await Promise.all([opened("greedy"), opened("greedy"), opened("other")]);
    for (const { room } of parts) greedy.use(room);
    const [one, next, other] = parts;
    assert.ok(one && next && other);
    const count = await one.openAll();
    assert.ok(count > 10 && count < 50, `${count} of 100`);
    assert.equal(await next.openAll(), 0);
    for (let n = 0; n < 40; n++) await next.enter(`folder${n}`); // folders are used without being kept open
    assert.ok((await other.openAll()) > 10);
  }
});

async function openUntilRefused(open: () => Promise<unknown>): Promise<number> {
  for (let count = 0; ; count++) {
    try {
      await open();
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "ENFILE");
      return count;
    }
  }
}

test("what a handle is asked to become is judged by the file behind it", async () => {
  await using room = await openRoom();
  const at = { folder: [], up: room.root };
  const { file: folder = "" } = await room.ask("lookup", { ...at, name: "part" });
  const { fh = 0 } = await room.ask("create", { ...at, name: "program", mode: 0o755, ...OWN, flags: 2 });
  const changes = { size: 0, mode: 0o2755 };
  await refuses(room.ask("change", { ...at, name: "part", id: folder, fh, changes }), "EPERM");
  assert.equal(fs.statSync(join(room.files, "program")).mode & 0o7777, 0o755);
  await room.ask("remove", { ...at, name: "program" });
  await room.ask("write", { fh, offset: 0 }, Buffer.from("temporary"));
  const cut = await room.ask("change", { ...at, name: "program", id: "gone", fh, changes: { size: 3 } });
  assert.equal(cut.body?.readBigUInt64LE(8), 3n);
});

test("a folder with many names takes the memory of some, whoever lists it", async (t) => {
  await using room = await openRoom();
  const names = Array.from({ length: 2000 }, (_, n) => `${"n".repeat(200)}${n}`);
  for (const name of names) fs.writeFileSync(join(room.files, "part", name), "");
  const socket = join(room.outside, "socket");
  const session = await FileSession.open(room.files, "/", true); // the connection closes it
  const server = createServer((each) => void serveMount(session, each, each)).listen(socket);
  await once(server, "listening");
  const channel = new Channel(socket, { node: "", drive: "", path: "/", readOnly: true }, { waitMs: 60_000 });
  t.after(() => {
    channel.close();
    server.close();
  });
  await channel.ready();
  const { file: id = "" } = await room.ask("lookup", { folder: [], up: room.root, name: "part" });
  const folders = new OpenFolders(channel);
  const fh = await folders.open(() => ({ folder: [], up: room.root, name: "part", id }));
  const listed = async (): Promise<string[]> => {
    const found: string[] = [];
    for (;;) {
      const { first, entries } = await folders.entries(fh, found.length);
      assert.ok(entries.length <= 1024, `${entries.length} names are kept`);
      const next = entries.slice(found.length - first);
      if (next.length === 0) return found;
      found.push(...next.slice(0, 100).map(([name]) => name));
    }
  };
  const all = await listed();
  assert.deepEqual(all.toSorted(), [".", "..", ...names].toSorted());
  assert.deepEqual(await listed(), all);
});

test("no program with other rights, and no device, is made", async () => {
  await using room = await openRoom();
  const at = { folder: [], up: room.root };
  for (const mode of [0o4755, 0o2755, 0o6777])
    await refuses(room.ask("create", { ...at, name: `p${mode}`, mode, ...OWN, flags: 1 }), "EPERM");
  const { file: id = "" } = await room.ask("makeFile", { ...at, name: "plain", mode: 0o755, ...OWN });
  await refuses(room.ask("change", { ...at, name: "plain", id, changes: { mode: 0o4755 } }), "EPERM");
  assert.deepEqual(fs.readdirSync(room.files).sort(), ["part", "plain"]);
  assert.equal(fs.statSync(join(room.files, "plain")).mode & 0o7777, 0o755);
});

test("a part of a drive is opened without links, and never above it", async () => {
  await using room = await openRoom();
  fs.symlinkSync(room.outside, join(room.files, "link"));
  for (const path of ["/link", "/link/below", "/../outside", "/part/../.."])
    await assert.rejects(FileSession.open(room.files, path, false), path);
  assert.deepEqual(fs.readdirSync(room.outside), ["secret"]);
});

test("bytes that are no messages end the conversation, and are not kept", () => {
  const sizes = [0, 3, 0xffff_ffff].map((length) => {
    const bytes = Buffer.alloc(16);
    bytes.writeUInt32LE(length, 0);
    return bytes;
  });
  const [front = Buffer.alloc(0)] = frameOf({ id: 1 });
  const long = Buffer.from(front);
  long.writeUInt32LE(1000, 4);
  const text = Buffer.from(front.toString("latin1").replace('{"id":1}', "not json"), "latin1");
  for (const bytes of [...sizes, long, text]) {
    const reader = new FrameReader();
    reader.push(bytes);
    assert.throws(() => reader.next());
  }
});
