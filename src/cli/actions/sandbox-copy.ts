/**
 * Copies files and folders into a sandbox and out of it. File names that a sandbox reports are untrusted: they must
 * stay below the folder named on the command line.
 */
import { createReadStream, createWriteStream, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { chmod, rename, rm } from "node:fs/promises";
import { basename, join, posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ApiError } from "../../client/api-error.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { filePath, openSandbox, type SandboxDoor } from "../sandbox-door.ts";

const INSIDE = /^([a-z0-9][a-z0-9-]*):(.+)$/;
/** Deepest nesting copied: a hostile sandbox can list folders without end. */
const DEPTH_MAX = 64;
const FILES_MAX = 100_000;
/** Most skipped entries that are named. */
const NAMED_MAX = 5;
/** Files copied at once: small files wait for the network, not for the disk. */
const AT_ONCE = 8;

interface Copied {
  files: number;
  bytes: number;
  /** Files that could not be read, with the reason. */
  failed: string[];
}

/** The entries found in a folder. */
interface Found {
  files: FileToCopy[];
  folders: string[];
  /** Entries that are neither files nor folders, and links to a folder above them. */
  leftOut: string[];
}

interface FileToCopy {
  from: string;
  to: string;
  /** Octal. */
  permissions: string;
}

interface Listing {
  files?: { name: string; permissions?: string }[];
  /** `target`: the entry is a link to that folder. */
  subdirectories?: { name: string; target?: string }[];
}

export async function copy(call: Invocation): Promise<undefined> {
  const [from = "", to = ""] = [text(call.args[0]), text(call.args[1])];
  const [source, target] = [INSIDE.exec(from), INSIDE.exec(to)];
  if ((source === null) === (target === null))
    throw new UsageError("one side is here and the other is SANDBOX:PATH.", "berth sandbox cp box:/tmp/a.txt .");
  const startedMs = call.context.now();
  const sandbox = await openSandbox((source ?? target)?.[1] ?? "", call);
  const found: Found = { files: [], folders: [], leftOut: [] };
  const { files, bytes, failed } = source
    ? await download(sandbox, source[2] ?? "", to, found)
    : await upload(sandbox, from, target?.[2] ?? "", found);
  const seconds = ((call.context.now() - startedMs) / 1000).toFixed(1);
  call.context.note(`copied ${files === 1 ? "" : `${files} files, `}${bytes} bytes in ${seconds} s`);
  if (found.leftOut.length > 0) call.context.note(`left out ${some(found.leftOut)}`);
  if (failed.length > 0) throw new Error(`not copied: ${some(failed)}`);
  return undefined;
}

const some = (names: string[]): string =>
  names.slice(0, NAMED_MAX).join(", ") + (names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : "");

async function download(sandbox: SandboxDoor, path: string, to: string, found: Found): Promise<Copied> {
  const isFolder = statSync(to, { throwIfNoEntry: false })?.isDirectory();
  const place = isFolder ? join(to, posix.basename(path)) : to;
  const response = await sandbox.fetch(filePath(path), { headers: { accept: "application/octet-stream" } });
  if (response.headers.has("content-disposition")) return { files: 1, bytes: await save(response, place), failed: [] };
  const listing = (await response.json()) as Listing;
  await listInside(sandbox, { path, listing, place, chain: [path] }, found);
  return inTurn(found.files, async ({ from, to: file, permissions }) => {
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
  /** Local path to write to. */
  place: string;
  /** Real paths of the folder and of all folders above it, to detect link cycles. */
  chain: string[];
}

async function listInside(
  sandbox: SandboxDoor,
  { path, listing, place, chain }: FolderInside,
  found: Found,
): Promise<void> {
  mkdirSync(place, { recursive: true });
  enter(found, path, chain);
  for (const { name, permissions = "" } of listing.files ?? [])
    found.files.push({ from: posix.join(path, plain(name)), to: join(place, name), permissions });
  for (const { name, target } of listing.subdirectories ?? []) {
    const below = posix.join(path, plain(name));
    const real = target ?? posix.join(chain.at(-1) ?? "", name);
    if (chain.includes(real)) found.leftOut.push(below);
    else {
      const inside = (await (await sandbox.fetch(filePath(below))).json()) as Listing;
      const folder = { path: below, listing: inside, place: join(place, name), chain: [...chain, real] };
      await listInside(sandbox, folder, found);
    }
  }
}

function enter(found: Found, folder: string, chain: string[]): void {
  found.folders.push(folder);
  if (chain.length > DEPTH_MAX) throw new UsageError(`${folder} is nested deeper than ${DEPTH_MAX} folders.`);
  if (found.files.length + found.folders.length > FILES_MAX)
    throw new UsageError(`There are more than ${FILES_MAX} files.`);
}

/** Refuses a name that is a path, which would be written somewhere else on this machine. */
function plain(name: string): string {
  if (name !== "" && name !== "." && name !== ".." && !/[/\\\0]/.test(name)) return name;
  throw new Error(`the sandbox has a file whose name cannot be used here: ${JSON.stringify(name)}`);
}

async function save(response: Response, file: string): Promise<number> {
  if (response.body === null) throw new Error("the sandbox sent nothing");
  // Written to a partial file first: an interrupted copy leaves the old file.
  const partial = `${file}.part-${process.pid}`;
  try {
    await pipeline(Readable.fromWeb(response.body as never), createWriteStream(partial));
    await rename(partial, file);
  } finally {
    await rm(partial, { force: true });
  }
  return statSync(file).size;
}

async function upload(sandbox: SandboxDoor, from: string, path: string, found: Found): Promise<Copied> {
  const stat = statSync(from, { throwIfNoEntry: false });
  if (!stat?.isFile() && !stat?.isDirectory()) throw new UsageError(`${from} is neither a file nor a folder.`);
  const target = path.endsWith("/") ? path + basename(from) : path;
  if (stat.isFile()) return { files: 1, bytes: await sendOne(sandbox, from, target, stat.mode), failed: [] };
  listHere(from, target, found, []);
  for (const folder of found.folders)
    await sandbox.fetch(filePath(folder), {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ isDirectory: true }),
    });
  return inTurn(found.files, (file) => send(sandbox, file.from, file.to, Number.parseInt(file.permissions, 8)));
}

function listHere(from: string, to: string, found: Found, above: string[]): void {
  const chain = [...above, realpathSync(from)];
  enter(found, to, chain);
  for (const name of readdirSync(from)) {
    const here = join(from, name);
    const stat = statSync(here, { throwIfNoEntry: false });
    if (stat?.isDirectory() && !chain.includes(realpathSync(here))) listHere(here, posix.join(to, name), found, chain);
    else if (stat?.isFile())
      found.files.push({ from: here, to: posix.join(to, name), permissions: (stat.mode & 0o777).toString(8) });
    else found.leftOut.push(here);
  }
}

/** Copies into an existing folder, as `cp` does. */
async function sendOne(sandbox: SandboxDoor, from: string, to: string, mode: number): Promise<number> {
  try {
    return await send(sandbox, from, to, mode);
  } catch (error) {
    const into = posix.join(to, basename(from));
    if (!(error instanceof ApiError && error.status === 422)) throw error;
    const { subdirectories } = (await sandbox.fetch(filePath(to)).then((answer) => answer.json())) as Listing;
    if (!subdirectories) throw error;
    return send(sandbox, from, into, mode);
  }
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

/** A file that cannot be read does not stop the others from being copied. */
async function inTurn(files: FileToCopy[], one: (file: FileToCopy) => Promise<number>): Promise<Copied> {
  const left = files.values();
  const copied: Copied = { files: 0, bytes: 0, failed: [] };
  const worker = async (): Promise<void> => {
    for (const file of left) {
      try {
        const bytes = await one(file);
        copied.files += 1;
        copied.bytes += bytes;
      } catch (error) {
        if (!(error instanceof ApiError && (error.status === 404 || error.status === 422))) throw error;
        copied.failed.push(error.message);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return copied;
}
