/** POST /filesystem-move/{path}: renames or moves a file, a folder or a link. */

import { lstatSync, renameSync, rmSync, type Stats, statSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { ApiError, errnoOf, toApiError } from "../http/api-error.ts";
import { type Call, field, readJson, requiredText } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { randomWord } from "../random-word.ts";
import {
  type BytePath,
  baseName,
  folderOf,
  fromText,
  joinPath,
  pathFromBody,
  pathFromUrl,
  toBytes,
  toText,
} from "./byte-path.ts";
import { DEFAULT_FOLDER_MODE, makeFolder } from "./file-io.ts";

export async function moveFile(call: Call): Promise<void> {
  const { pathBase, user } = call.daemon.environment;
  const from = pathFromUrl(call.params[0] ?? "", pathBase);
  const body = await readJson(call);
  const asked = requiredText(body, "destination");
  const overwrite = field(body, "overwrite", "boolean") ?? false;
  const stats = look(from);
  if (!stats) throw new ApiError(404, `${toText(from)}: no such file or directory`);
  const to = targetOf(from, pathFromBody(asked, pathBase), asked.endsWith("/"));
  if (from === "/" || isBelow(to, from)) throw new ApiError(422, `${toText(from)} cannot be moved into itself.`);
  if (to !== from) {
    refuseTaken(to, look(to), stats, overwrite);
    makeFolder(folderOf(to), DEFAULT_FOLDER_MODE, user);
    await move(from, to);
  }
  sendJson(call.res, 200, { path: toText(to), message: "Moved successfully" });
}

/** Moves into `to` when that is a folder or was written with a trailing slash; otherwise `to` is the new name. */
function targetOf(from: BytePath, to: BytePath, isFolderMeant: boolean): BytePath {
  const isFolder = isFolderMeant || statSync(toBytes(to), { throwIfNoEntry: false })?.isDirectory() === true;
  return isFolder && to !== from ? joinPath(to, baseName(from)) : to;
}

function refuseTaken(to: BytePath, there: Stats | undefined, moved: Stats, overwrite: boolean): void {
  if (!there) return;
  if (!overwrite) throw new ApiError(409, `${toText(to)} is there already; "overwrite": true replaces a file.`);
  if (there.isDirectory() || moved.isDirectory())
    throw new ApiError(409, `${toText(to)} is there already, and a folder is never replaced.`);
}

/** Gives `from` the place `to`, in place of a file that is there. */
export async function move(from: BytePath, to: BytePath): Promise<void> {
  try {
    renameSync(toBytes(from), toBytes(to));
  } catch (error) {
    if (errnoOf(error) !== "EXDEV") throw toApiError(error, toText(from));
    await moveAcross(from, to);
  }
}

/** Moves to another file system: copies to a temporary name beside the target, then renames the complete copy. */
async function moveAcross(from: BytePath, to: BytePath): Promise<void> {
  const aside = joinPath(folderOf(to), fromText(`.move-${randomWord(12)}`));
  try {
    await cp(toText(from), toText(aside), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    renameSync(toBytes(aside), toBytes(to));
  } catch (error) {
    rmSync(toBytes(aside), { recursive: true, force: true });
    throw toApiError(error, toText(from));
  }
  await rm(toBytes(from), { recursive: true, force: true });
}

const look = (path: BytePath): Stats | undefined => lstatSync(toBytes(path), { throwIfNoEntry: false });
const isBelow = (path: BytePath, folder: BytePath): boolean => path.startsWith(`${folder}/`);
