/** /filesystem/tree/{path}: one folder, or many files written at once. */

import { statSync } from "node:fs";
import { posix } from "node:path";
import { ApiError } from "../http/api-error.ts";
import { booleanQuery, type Call, readJson } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { type BytePath, fromText, pathFromUrl, toBytes, toText } from "./byte-path.ts";
import { listFolder } from "./entry.ts";
import { DEFAULT_FOLDER_MODE, makeFolder, writeWhole } from "./file-io.ts";
import { refuseLarge, remove, withSubject } from "./files-api.ts";

const TREE_FILES_MAX = 50_000;

export async function getTree(call: Call): Promise<void> {
  sendJson(call.res, 200, await listFolder(existingFolder(call)));
}

export async function putTree(call: Call): Promise<void> {
  const root = folderOf(call);
  const { files } = await readJson(call);
  const { user } = call.daemon.environment;
  const entries = filesOf(files);
  refuseLarge(entries.reduce((sum, [, content]) => sum + Buffer.byteLength(content), 0));
  makeFolder(root, DEFAULT_FOLDER_MODE, user);
  for (const [name, content] of entries) {
    const path = inside(root, name);
    withSubject(path, () => writeWhole(path, content, { mode: undefined, user }));
  }
  sendJson(call.res, 200, await listFolder(root));
}

export async function deleteTree(call: Call): Promise<void> {
  const path = existingFolder(call);
  await remove(path, booleanQuery(call, "recursive", false));
  sendJson(call.res, 200, { path: toText(path), message: "Directory deleted successfully" });
}

/** The path in this URL is always absolute, with or without a leading slash of its own. */
const folderOf = (call: Call): BytePath => pathFromUrl(`/${call.params[0] ?? ""}`, call.daemon.environment.pathBase);

function existingFolder(call: Call): BytePath {
  const path = folderOf(call);
  const stats = statSync(toBytes(path), { throwIfNoEntry: false });
  if (!stats) throw new ApiError(404, `${toText(path)}: no such file or directory`);
  if (!stats.isDirectory()) throw new ApiError(400, `${toText(path)} is not a directory.`);
  return path;
}

function filesOf(files: unknown): [string, string][] {
  if (files === undefined || files === null) return [];
  if (typeof files !== "object" || Array.isArray(files)) throw new ApiError(400, '"files" must be an object.');
  const entries = Object.entries(files);
  if (entries.length > TREE_FILES_MAX) throw new ApiError(400, `"files" has more than ${TREE_FILES_MAX} entries.`);
  for (const [name, content] of entries) {
    if (typeof content !== "string") throw new ApiError(400, `The content of "${name}" must be a string.`);
  }
  return entries as [string, string][];
}

/** Resolves a name that may lead into subfolders; refuses one that leaves the tree. */
function inside(root: BytePath, name: string): BytePath {
  const path = posix.resolve(root, `./${fromText(name)}`);
  const within = root === "/" ? path !== "/" : path.startsWith(`${root}/`);
  if (!within) throw new ApiError(400, `"${name}" lies outside the tree.`);
  return path as BytePath;
}
