/** Answers the kernel's questions about one mount: each becomes a question to the server that has the files. */
import { FileError } from "../errors.ts";
import type { Answer, AskName, Asks, Changes, FileRef } from "../wire.ts";
import type { Channel } from "./channel.ts";
import {
  attributeAnswer,
  entriesAnswer,
  entryAnswer,
  type KernelRequest,
  OPCODE,
  openAnswer,
  spaceAnswer,
  textsIn,
} from "./kernel.ts";
import { KnownFiles } from "./known-files.ts";
import { OpenFiles } from "./open-files.ts";
import { OpenFolders } from "./open-folders.ts";

type Handler = (request: KernelRequest, known: KnownFiles) => Promise<Buffer | null>;

const FILE_TYPE = 0o170000;
const REGULAR = 0o100000;
const GETATTR_FH = 1;
const CHANGED = {
  mode: 1,
  uid: 2,
  gid: 4,
  size: 8,
  atime: 16,
  mtime: 32,
  fh: 64,
  atimeNow: 128,
  mtimeNow: 256,
} as const;
const DATA_ONLY = 1;
const NOTHING = Buffer.alloc(0);

export class Requests {
  readonly #channel: Channel;
  readonly #files: OpenFiles;
  readonly #folders: OpenFolders;
  #known: KnownFiles | null = null;
  /** The connection that the root was asked over last. */
  #rootEpoch = -1;
  #asking: Promise<void> | null = null;

  constructor(channel: Channel) {
    this.#channel = channel;
    this.#files = new OpenFiles(channel, (node) => this.#file(node));
    this.#folders = new OpenFolders(channel);
  }

  /** Null for a question that has no answer. Throws a FileError. */
  async answer(request: KernelRequest): Promise<Buffer | null> {
    if (FORGETS.has(request.opcode)) return this.#forget(request);
    const handler = this.#handlers[request.opcode];
    if (!handler) throw new FileError("ENOSYS");
    // A close has to work also while the server is away: whoever ends a program waits for it.
    if (!BY_HANDLE.has(request.opcode)) await this.#findRoot();
    return handler(request, this.#known as KnownFiles);
  }

  /** The root is asked for once for each connection: it may be another folder after one that broke. */
  async #findRoot(): Promise<void> {
    if (this.#known && this.#rootEpoch === this.#channel.epoch) return;
    this.#asking ??= this.#ask("root", () => ({}))
      .then(({ file = "" }) => {
        this.#rootEpoch = this.#channel.epoch;
        if (this.#known) this.#known.rootIs(file);
        else this.#known = new KnownFiles(file);
      })
      .finally(() => {
        this.#asking = null;
      });
    await this.#asking;
  }

  #ask<Name extends AskName>(name: Name, args: () => Asks[Name], body?: Buffer): Promise<Answer> {
    return this.#channel.ask(name, args, body);
  }

  #file(node: bigint): FileRef {
    if (!this.#known) throw new FileError("ESTALE");
    return this.#known.file(node);
  }

  #forget({ opcode, node, args }: KernelRequest): null {
    if (opcode === OPCODE.forget) this.#known?.forget(node, args.readBigUInt64LE(0));
    if (opcode === OPCODE.batchForget)
      for (let at = 8; at + 16 <= args.length; at += 16)
        this.#known?.forget(args.readBigUInt64LE(at), args.readBigUInt64LE(at + 8));
    return null;
  }

  readonly #handlers: Readonly<Record<number, Handler>> = {
    [OPCODE.lookup]: async ({ node, args }, known) => {
      const [name = ""] = textsIn(args, 0, 1);
      return entry(known, node, name, await this.#ask("lookup", () => known.entry(node, name)));
    },
    [OPCODE.getattr]: async ({ node, args }, known) => {
      if ((args.readUInt32LE(0) & GETATTR_FH) === 0) return attributes(await this.#ask("stat", () => known.file(node)));
      const stat = (fh: () => number) => this.#ask("stat", () => ({ ...known.file(node), fh: fh() }));
      return attributes(await this.#files.use(handleAt(args, 8), true, stat));
    },
    [OPCODE.setattr]: async ({ node, args }, known) => {
      const changes = changesIn(args);
      const ask = (fh?: () => number) =>
        this.#ask("change", () => ({ ...known.file(node), changes, ...(fh && { fh: fh() }) }));
      const usesHandle = (args.readUInt32LE(0) & CHANGED.fh) !== 0;
      return attributes(await (usesHandle ? this.#files.use(handleAt(args, 8), true, ask) : ask()));
    },
    [OPCODE.readlink]: async ({ node }, known) => (await this.#ask("readLink", () => known.file(node))).body ?? NOTHING,
    [OPCODE.symlink]: async ({ node, args, uid, gid }, known) => {
      const [name = "", target = ""] = textsIn(args, 0, 2);
      const make = () => ({ ...known.entry(node, name), mode: 0o777, uid, gid, target });
      return entry(known, node, name, await this.#ask("makeLink", make));
    },
    [OPCODE.mknod]: async ({ node, args, uid, gid }, known) => {
      const mode = args.readUInt32LE(0);
      if ((mode & FILE_TYPE) !== REGULAR) throw new FileError("EPERM");
      const [name = ""] = textsIn(args, 16, 1);
      const make = () => ({ ...known.entry(node, name), mode: mode & 0o7777, uid, gid });
      return entry(known, node, name, await this.#ask("makeFile", make));
    },
    [OPCODE.mkdir]: async ({ node, args, uid, gid }, known) => {
      const [name = ""] = textsIn(args, 8, 1);
      const mode = args.readUInt32LE(0) & 0o7777;
      const make = () => ({ ...known.entry(node, name), mode, uid, gid });
      return entry(known, node, name, await this.#ask("makeFolder", make));
    },
    [OPCODE.unlink]: ({ node, args }, known) => this.#remove("remove", node, args, known),
    [OPCODE.rmdir]: ({ node, args }, known) => this.#remove("removeFolder", node, args, known),
    [OPCODE.rename]: ({ node, args }, known) => this.#rename(node, args, 8, known),
    [OPCODE.rename2]: ({ node, args }, known) => {
      if (args.readUInt32LE(8) !== 0) throw new FileError("EINVAL");
      return this.#rename(node, args, 16, known);
    },
    [OPCODE.link]: async ({ node, args }, known) => {
      const [name = ""] = textsIn(args, 8, 1);
      const link = () => ({ file: known.file(args.readBigUInt64LE(0)), to: known.entry(node, name) });
      return entry(known, node, name, await this.#ask("hardLink", link));
    },
    [OPCODE.open]: async ({ node, args }, known) => {
      const flags = args.readUInt32LE(0);
      return openAnswer(this.#files.add(node, flags, await this.#ask("open", () => ({ ...known.file(node), flags }))));
    },
    [OPCODE.create]: async ({ node, args, uid, gid }, known) => {
      const [flags, mode] = [args.readUInt32LE(0), args.readUInt32LE(4) & 0o7777];
      const [name = ""] = textsIn(args, 16, 1);
      const made = await this.#ask("create", () => ({ ...known.entry(node, name), mode, uid, gid, flags }));
      const front = entry(known, node, name, made);
      return Buffer.concat([front, openAnswer(this.#files.add(front.readBigUInt64LE(0), flags, made))]);
    },
    [OPCODE.read]: async ({ args }) => {
      const [offset, bytes] = [Number(args.readBigUInt64LE(8)), args.readUInt32LE(16)];
      const read = (fh: () => number) => this.#ask("read", () => ({ fh: fh(), offset, bytes }));
      return (await this.#files.use(handleAt(args, 0), true, read)).body ?? NOTHING;
    },
    [OPCODE.write]: async ({ args }) => {
      const [offset, bytes] = [Number(args.readBigUInt64LE(8)), args.readUInt32LE(16)];
      const data = args.subarray(40, 40 + bytes);
      const write = (fh: () => number) => this.#ask("write", () => ({ fh: fh(), offset }), data);
      // The same bytes at the same place twice are the same file; at its end they would be there twice.
      await this.#files.use(handleAt(args, 0), !this.#files.appends(handleAt(args, 0)), write);
      const out = Buffer.alloc(8);
      out.writeUInt32LE(bytes, 0);
      return out;
    },
    [OPCODE.statfs]: async () => spaceAnswer((await this.#ask("space", () => ({}))).space ?? {}),
    [OPCODE.release]: async ({ args }) => {
      await this.#files.close(handleAt(args, 0));
      return NOTHING;
    },
    // Every write was answered by the server that has the file, so a close has nothing to send.
    [OPCODE.flush]: async () => NOTHING,
    [OPCODE.fsync]: async ({ args }) => {
      const dataOnly = (args.readUInt32LE(8) & DATA_ONLY) !== 0;
      await this.#files.use(handleAt(args, 0), false, (fh) => this.#ask("sync", () => ({ fh: fh(), dataOnly })));
      return NOTHING;
    },
    [OPCODE.opendir]: async ({ node }, known) => openAnswer(await this.#folders.open(() => known.file(node))),
    [OPCODE.readdir]: async ({ args }) => {
      const offset = Number(args.readBigUInt64LE(8));
      return entriesAnswer(await this.#folders.entries(handleAt(args, 0), offset), offset, args.readUInt32LE(16));
    },
    [OPCODE.releasedir]: async ({ args }) => {
      await this.#folders.close(handleAt(args, 0));
      return NOTHING;
    },
    [OPCODE.fsyncdir]: async ({ node }, known) => {
      await this.#ask("syncFolder", () => known.file(node));
      return NOTHING;
    },
  };

  async #remove(what: "remove" | "removeFolder", node: bigint, args: Buffer, known: KnownFiles): Promise<Buffer> {
    const [name = ""] = textsIn(args, 0, 1);
    await this.#ask(what, () => known.entry(node, name));
    return NOTHING;
  }

  async #rename(node: bigint, args: Buffer, namesAt: number, known: KnownFiles): Promise<Buffer> {
    const next = args.readBigUInt64LE(0);
    const [before = "", after = ""] = textsIn(args, namesAt, 2);
    const rename = () => ({ from: known.entry(node, before), to: known.entry(next, after) });
    const { file } = await this.#ask("rename", rename);
    if (file !== undefined) known.moved(file, next, after);
    return NOTHING;
  }
}

const FORGETS: ReadonlySet<number> = new Set([OPCODE.forget, OPCODE.batchForget, OPCODE.destroy]);

/** Questions about what is open, which name no path. */
const BY_HANDLE: ReadonlySet<number> = new Set([
  ...[OPCODE.flush, OPCODE.release, OPCODE.read, OPCODE.write, OPCODE.fsync, OPCODE.readdir, OPCODE.releasedir],
  OPCODE.statfs,
]);

const handleAt = (args: Buffer, at: number): number => Number(args.readBigUInt64LE(at));

function entry(known: KnownFiles, folder: bigint, name: string, { file, body }: Answer): Buffer {
  if (file === undefined || body === undefined) throw new FileError("EIO");
  return entryAnswer(known.found(folder, name, file), body);
}

function attributes({ body }: Answer): Buffer {
  if (body === undefined) throw new FileError("EIO");
  return attributeAnswer(body);
}

function changesIn(args: Buffer): Changes {
  const valid = args.readUInt32LE(0);
  const has = (flag: number): boolean => (valid & flag) !== 0;
  const time = (at: number, nanoAt: number): number =>
    Number(args.readBigInt64LE(at)) + args.readUInt32LE(nanoAt) / 1e9;
  return {
    ...(has(CHANGED.mode) && { mode: args.readUInt32LE(68) & 0o7777 }),
    ...(has(CHANGED.uid) && { uid: args.readUInt32LE(76) }),
    ...(has(CHANGED.gid) && { gid: args.readUInt32LE(80) }),
    ...(has(CHANGED.size) && { size: Number(args.readBigUInt64LE(16)) }),
    ...(has(CHANGED.atime) && { atime: has(CHANGED.atimeNow) ? ("now" as const) : time(32, 56) }),
    ...(has(CHANGED.mtime) && { mtime: has(CHANGED.mtimeNow) ? ("now" as const) : time(40, 60) }),
  };
}
