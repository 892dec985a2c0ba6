/**
 * Files and folders, into a sandbox and out of it. What a sandbox says about its own files is believed only as far as
 * they stay below the folder that was named here.
 */
import { createReadStream, createWriteStream, mkdirSync, readdirSync, statSync } from "node:fs";
import { chmod, rename, rm } from "node:fs/promises";
import { basename, join, posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { openSandbox, type SandboxDoor } from "../sandbox-door.ts";

const INSIDE = /^([a-z0-9][a-z0-9-]*):(.+)$/;
/** Links can lead in circles, and a hostile sandbox can list for ever. */
const DEPTH_MAX = 64;
const FILES_MAX = 100_000;
/** Small files wait for the network, not for the disk. */
const AT_ONCE = 8;

interface Copied {
  files: number;
  bytes: number;
}

interface FileToCopy {
  from: string;
  to: string;
  /** Octal. */
  permissions: string;
}

interface Listing {
  files?: { name: string; permissions?: string }[];
  subdirectories?: { name: string }[];
}

export async function copy(call: Invocation): Promise<undefined> {
  const [from = "", to = ""] = [text(call.args[0]), text(call.args[1])];
  const [source, target] = [INSIDE.exec(from), INSIDE.exec(to)];
  if ((source === null) === (target === null))
    throw new UsageError("one side is here and the other is SANDBOX:PATH.", "berth sandbox cp box:/tmp/a.txt .");
  const startedMs = call.context.now();
  const sandbox = await openSandbox((source ?? target)?.[1] ?? "", call);
  const copied = source ? await download(sandbox, source[2] ?? "", to) : await upload(sandbox, from, target?.[2] ?? "");
  const seconds = ((call.context.now() - startedMs) / 1000).toFixed(1);
  const files = copied.files === 1 ? "" : `${copied.files} files, `;
  call.context.note(`copied ${files}${copied.bytes} bytes in ${seconds} s`);
  return undefined;
}

async function download(sandbox: SandboxDoor, path: string, to: string): Promise<Copied> {
  const isFolder = statSync(to, { throwIfNoEntry: false })?.isDirectory();
  const place = isFolder ? join(to, posix.basename(path)) : to;
  const response = await sandbox.fetch(filePath(path), { headers: { accept: "application/octet-stream" } });
  if (response.headers.has("content-disposition")) return { files: 1, bytes: await save(response, place) };
  const listing = (await response.json()) as Listing;
  const found: FileToCopy[] = [];
  await listInside(sandbox, { path, listing, place }, found, 0);
  return inTurn(found, async ({ from, to: file, permissions }) => {
    const bytes = await save(
      await sandbox.fetch(filePath(from), { headers: { accept: "application/octet-stream" } }),
      file,
    );
    if (/^0[0-7]{3}$/.test(permissions)) await chmod(file, Number.parseInt(permissions, 8));
    return bytes;
  });
}

interface FolderInside {
  path: string;
  listing: Listing;
  /** Where it goes here. */
  place: string;
}

async function listInside(
  sandbox: SandboxDoor,
  { path, listing, place }: FolderInside,
  found: FileToCopy[],
  depth: number,
): Promise<void> {
  if (depth > DEPTH_MAX) throw new Error(`${path} is nested deeper than ${DEPTH_MAX} folders.`);
  mkdirSync(place, { recursive: true });
  for (const { name, permissions = "" } of listing.files ?? []) {
    if (found.length >= FILES_MAX) throw new Error(`There are more than ${FILES_MAX} files.`);
    found.push({ from: posix.join(path, plain(name)), to: join(place, name), permissions });
  }
  for (const { name } of listing.subdirectories ?? []) {
    const below = posix.join(path, plain(name));
    const inside = (await (await sandbox.fetch(filePath(below))).json()) as Listing;
    await listInside(sandbox, { path: below, listing: inside, place: join(place, name) }, found, depth + 1);
  }
}

/** A name that is a path would be written somewhere else on this machine. */
function plain(name: string): string {
  if (name !== "" && name !== "." && name !== ".." && !/[/\\\0]/.test(name)) return name;
  throw new Error(`the sandbox has a file whose name cannot be used here: ${JSON.stringify(name)}`);
}

async function save(response: Response, file: string): Promise<number> {
  if (response.body === null) throw new Error("the sandbox sent nothing");
  // A copy that breaks off leaves what was there before.
  const partial = `${file}.part-${process.pid}`;
  try {
    await pipeline(Readable.fromWeb(response.body as never), createWriteStream(partial));
    await rename(partial, file);
  } finally {
    await rm(partial, { force: true });
  }
  return statSync(file).size;
}

async function upload(sandbox: SandboxDoor, from: string, path: string): Promise<Copied> {
  const stat = statSync(from, { throwIfNoEntry: false });
  if (!stat?.isFile() && !stat?.isDirectory()) throw new UsageError(`${from} is neither a file nor a folder.`);
  const target = path.endsWith("/") ? path + basename(from) : path;
  if (stat.isFile()) return { files: 1, bytes: await send(sandbox, from, target, stat.mode) };
  const found: FileToCopy[] = [];
  for (const folder of listHere(from, target, found, 0))
    await sandbox.fetch(filePath(folder), {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ isDirectory: true }),
    });
  return inTurn(found, (file) => send(sandbox, file.from, file.to, Number.parseInt(file.permissions, 8)));
}

/** Files are added to `found`; the folders are answered, outer ones first. What is neither is left out. */
function listHere(from: string, to: string, found: FileToCopy[], depth: number): string[] {
  if (depth > DEPTH_MAX) throw new UsageError(`${from} is nested deeper than ${DEPTH_MAX} folders.`);
  return [
    to,
    ...readdirSync(from).flatMap((name) => {
      const here = join(from, name);
      const stat = statSync(here, { throwIfNoEntry: false });
      if (stat?.isDirectory()) return listHere(here, posix.join(to, name), found, depth + 1);
      if (stat?.isFile())
        found.push({ from: here, to: posix.join(to, name), permissions: (stat.mode & 0o777).toString(8) });
      if (found.length > FILES_MAX) throw new UsageError(`There are more than ${FILES_MAX} files.`);
      return [];
    }),
  ];
}

async function send(sandbox: SandboxDoor, from: string, to: string, mode: number): Promise<number> {
  const permissions = `0${(mode & 0o777).toString(8)}`;
  await sandbox.fetch(`${filePath(to)}?permissions=${permissions}`, {
    method: "PUT",
    headers: { "content-type": "application/octet-stream" },
    body: Readable.toWeb(createReadStream(from)) as ReadableStream,
    duplex: "half",
  });
  return statSync(from).size;
}

async function inTurn(files: FileToCopy[], one: (file: FileToCopy) => Promise<number>): Promise<Copied> {
  const left = files.values();
  let bytes = 0;
  const worker = async (): Promise<void> => {
    for (const file of left) {
      const size = await one(file);
      bytes += size;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { files: files.length, bytes };
}

/** A path with an encoded slash is absolute, one without is relative to the working directory. */
const filePath = (path: string): string =>
  `/filesystem/${path.startsWith("/") ? encodeURIComponent(path) : path.split("/").map(encodeURIComponent).join("/")}`;
