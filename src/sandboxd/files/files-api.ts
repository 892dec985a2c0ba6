/** /filesystem/{path}: read, write and delete one file or folder. */

import { closeSync, lstatSync, rmdirSync, statSync, unlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { FILE_CONTENT_BYTES_MAX } from "../../contract/sandbox-wire.ts";
import { ApiError, toApiError } from "../http/api-error.ts";
import { booleanQuery, type Call, field, readJson } from "../http/call.ts";
import { isFormData, readForm } from "../http/form-data.ts";
import { sendJsonWithTexts } from "../http/json-stream.ts";
import { sendJson } from "../http/send.ts";
import { type BytePath, pathFromUrl, toBytes, toText } from "./byte-path.ts";
import { fileEntry, listFolder, parsePermissions } from "./entry.ts";
import {
  DEFAULT_FOLDER_MODE,
  IncomingFile,
  makeFolder,
  notRegular,
  openRegular,
  textSource,
  writeWhole,
} from "./file-io.ts";

/**
 * Limits content sent as JSON, which is held in memory whole. Counts decoded bytes, not their escaped form on the wire.
 */
export function refuseLarge(bytes: number): void {
  if (bytes > FILE_CONTENT_BYTES_MAX)
    throw new ApiError(
      413,
      `JSON may carry ${FILE_CONTENT_BYTES_MAX} bytes of content; send a form, raw bytes or parts.`,
    );
}

/** Largest form field other than the file; these fields are short words. */
const FORM_FIELD_BYTES_MAX = 64 * 1024;

export async function getFile(call: Call): Promise<void> {
  const path = pathOf(call);
  const stats = statSync(toBytes(path), { throwIfNoEntry: false });
  if (!stats) throw new ApiError(404, `${toText(path)}: no such file or directory`);
  if (stats.isDirectory()) return sendJson(call.res, 200, await listFolder(path));
  if (!stats.isFile()) throw notRegular(path, stats);
  if (wantsBytes(call)) return (await import("./download.ts")).sendFile(call, path);
  const file = openRegular(path);
  try {
    await sendJsonWithTexts(call.res, { ...fileEntry(path, file.stats) }, { content: [textSource(file)] });
  } finally {
    closeSync(file.fd);
  }
}

/**
 * Writes a file. Missing parents are created, so a 404 from the file system is not a missing resource: it becomes 422.
 */
export const putFile = (call: Call): Promise<void> =>
  put(call).catch((error: unknown) => {
    const failure = toApiError(error);
    throw failure.status === 404 ? new ApiError(422, failure.message) : failure;
  });

async function put(call: Call): Promise<void> {
  const path = pathOf(call);
  const type = call.req.headers["content-type"];
  if (isFormData(type)) return putForm(call, path);
  if (/^application\/octet-stream\b/i.test(type ?? "")) return putBytes(call, path);
  const body = await readJson(call);
  const permissions = field(body, "permissions", "string");
  const { user } = call.daemon.environment;
  if (field(body, "isDirectory", "boolean")) {
    makeFolder(path, parsePermissions(permissions, DEFAULT_FOLDER_MODE), user);
    return sendJson(call.res, 200, { path: toText(path), message: "Directory created successfully" });
  }
  const mode = permissions ? parsePermissions(permissions, 0) : undefined;
  const content = field(body, "content", "string") ?? "";
  refuseLarge(Buffer.byteLength(content));
  withSubject(path, () => writeWhole(path, content, { mode, user }));
  sendJson(call.res, 200, { path: toText(path), message: "File created or updated successfully" });
}

export async function deleteFile(call: Call): Promise<void> {
  const path = pathOf(call);
  await remove(path, booleanQuery(call, "recursive", false));
  sendJson(call.res, 200, { path: toText(path), message: "Deleted successfully" });
}

/** Removes a file or folder. A symbolic link is removed itself, never its target. */
export async function remove(path: BytePath, recursive: boolean): Promise<void> {
  const stats = lstatSync(toBytes(path), { throwIfNoEntry: false });
  if (!stats) throw new ApiError(404, `${toText(path)}: no such file or directory`);
  if (path === "/") throw new ApiError(422, "The root directory cannot be deleted.");
  try {
    if (!stats.isDirectory()) unlinkSync(toBytes(path));
    else if (recursive) await rm(toBytes(path), { recursive: true, force: true });
    else rmdirSync(toBytes(path));
  } catch (error) {
    throw toApiError(error, toText(path));
  }
}

/**
 * Stores the first part called `file`, in whatever order the parts come. The URL decides the path, so a `path` field is
 * ignored. Permissions usually arrive after the file and are applied at the end.
 */
async function putForm(call: Call, path: BytePath): Promise<void> {
  let incoming: IncomingFile | null = null;
  let permissions = "";
  const { user } = call.daemon.environment;
  try {
    await readForm(call.req as AsyncIterable<Buffer>, call.req.headers["content-type"], (part) => {
      if (part.name === "file" && part.filename !== undefined && !incoming) {
        const file = new IncomingFile(path, user);
        incoming = file;
        return { write: (chunk) => file.write(chunk) };
      }
      return {
        write: (chunk) => {
          if (part.name !== "permissions") return;
          permissions += Buffer.from(chunk).toString("utf8");
          if (permissions.length > FORM_FIELD_BYTES_MAX) throw new ApiError(400, "A form field is too long.");
        },
      };
    });
    const file = incoming as IncomingFile | null;
    if (!file) throw new ApiError(400, 'The form has no part "file" with a file name.');
    file.commit({ mode: permissions ? parsePermissions(permissions.trim(), 0) : undefined, user });
  } finally {
    (incoming as IncomingFile | null)?.discard();
  }
  sendJson(call.res, 200, { path: toText(path), message: "File uploaded successfully" });
}

/** Stores the request body as the content. */
async function putBytes(call: Call, path: BytePath): Promise<void> {
  const { user } = call.daemon.environment;
  const permissions = call.query.get("permissions") ?? undefined;
  const mode = permissions ? parsePermissions(permissions, 0) : undefined;
  const incoming = new IncomingFile(path, user);
  try {
    for await (const chunk of call.req as AsyncIterable<Buffer>) await incoming.write(chunk);
    incoming.commit({ mode, user });
  } finally {
    incoming.discard();
  }
  sendJson(call.res, 200, { path: toText(path), message: "File uploaded successfully" });
}

const pathOf = (call: Call): BytePath => pathFromUrl(call.params[0] ?? "", call.daemon.environment.pathBase);

/**
 * Whether to send bytes instead of JSON: `download=true`, or an Accept header that names octet-stream or excludes JSON.
 */
function wantsBytes(call: Call): boolean {
  if (booleanQuery(call, "download", false)) return true;
  const accept = call.req.headers.accept;
  if (accept === undefined || accept === "") return false;
  return accept.includes("application/octet-stream") || !(accept.includes("json") || accept.includes("*/*"));
}

export function withSubject<T>(path: BytePath, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw toApiError(error, toText(path));
  }
}
