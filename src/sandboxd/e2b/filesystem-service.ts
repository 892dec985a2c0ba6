/** `filesystem.Filesystem` of E2B: entries, folders, moves, and watches. */
import { readdirSync, statSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { type BytePath, folderOf, fromBytes, joinPath, pathFromBody, toBytes, toText } from "../files/byte-path.ts";
import { DEFAULT_FOLDER_MODE, makeFolder } from "../files/file-io.ts";
import { remove } from "../files/files-api.ts";
import { move } from "../files/move-api.ts";
import { ApiError } from "../http/api-error.ts";
import { type Message, type Method, type Rpc, RpcError, serviceOf, textOf } from "./connect.ts";
import { entryInfo } from "./entry-info.ts";
import { type NamedUser, userOfCredentials } from "./named-user.ts";
import { createWatcher, getWatcherEvents, removeWatcher, watchDir } from "./watchers.ts";

const ENTRIES_MAX = 100_000;
/** Entries read before the event loop serves other requests. */
const ENTRIES_PER_TURN = 500;

interface Place extends NamedUser {
  path: BytePath;
}

function placeOf({ call, message }: Rpc, member = "path"): Place {
  const named = userOfCredentials(call);
  return { ...named, path: pathFromBody(textOf(message, member), named.base) };
}

export const isFolder = (path: BytePath): boolean =>
  statSync(toBytes(path), { throwIfNoEntry: false })?.isDirectory() === true;

function requireFolder(path: BytePath): void {
  entryInfo(path); // refuses a path that is not there
  if (!isFolder(path)) throw new ApiError(400, `${toText(path)} is not a directory.`);
}

function makeDir(rpc: Rpc): Message {
  const { path, user } = placeOf(rpc);
  if (isFolder(path)) throw new RpcError("already_exists", `${toText(path)} exists already.`);
  makeFolder(path, DEFAULT_FOLDER_MODE, user);
  return { entry: entryInfo(path) };
}

async function moveEntry(rpc: Rpc): Promise<Message> {
  const { path: from, user } = placeOf(rpc, "source");
  const { path: to } = placeOf(rpc, "destination");
  entryInfo(from); // refuses a path that is not there
  if (from === "/" || to.startsWith(`${from}/`))
    throw new ApiError(400, `${toText(from)} cannot be moved into itself.`);
  makeFolder(folderOf(to), DEFAULT_FOLDER_MODE, user);
  await move(from, to);
  return { entry: entryInfo(to) };
}

async function removeEntry(rpc: Rpc): Promise<Message> {
  await remove(placeOf(rpc).path, true).catch((error: unknown) => {
    // What is not there counts as removed.
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  });
  return {};
}

async function listDir(rpc: Rpc): Promise<Message> {
  const { path } = placeOf(rpc);
  const depth = Number(rpc.message.depth ?? 1) || 1;
  requireFolder(path);
  const entries: Message[] = [];
  let folders: BytePath[] = [path];
  for (let level = 0; level < depth && folders.length > 0; level += 1) {
    const below: BytePath[] = [];
    for (const folder of folders) {
      for (const name of readdirSync(toBytes(folder), { encoding: "buffer" })) {
        const child = joinPath(folder, fromBytes(name));
        const entry = entryOrNull(child);
        if (entry === null) continue;
        if (entries.push(entry) > ENTRIES_MAX)
          throw new RpcError("resource_exhausted", `The folder has more than ${ENTRIES_MAX} entries.`);
        // Links to folders are listed and not entered: they may form a circle.
        if (entry.type === "FILE_TYPE_DIRECTORY" && entry.symlinkTarget === undefined) below.push(child);
        if (entries.length % ENTRIES_PER_TURN === 0) await breathe();
      }
    }
    folders = below;
  }
  const key = (entry: Message): string => String(entry.path);
  entries.sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return { entries };
}

/** Null for an entry that vanished while its folder was read. */
function entryOrNull(path: BytePath): Message | null {
  try {
    return entryInfo(path);
  } catch {
    return null;
  }
}

/** The folder of a watch. */
function watched(rpc: Rpc): BytePath {
  const { path } = placeOf(rpc);
  requireFolder(path);
  return path;
}

const METHODS: Record<string, Method> = {
  Stat: { unary: (rpc) => ({ entry: entryInfo(placeOf(rpc).path) }) },
  MakeDir: { unary: makeDir },
  Move: { unary: moveEntry },
  ListDir: { unary: listDir },
  Remove: { unary: removeEntry },
  WatchDir: { stream: (rpc, send) => watchDir(rpc, watched(rpc), send) },
  CreateWatcher: { unary: (rpc) => createWatcher(rpc, watched(rpc)) },
  GetWatcherEvents: { unary: getWatcherEvents },
  RemoveWatcher: { unary: removeWatcher },
};

export const filesystemService = serviceOf(METHODS);
