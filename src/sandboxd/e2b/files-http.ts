/** `/files` of E2B: the bytes of files, as a body or as a form with several files. */
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import type { SandboxUser } from "../../contract/sandbox-wire.ts";
import { type BytePath, baseName, pathFromBody, toText } from "../files/byte-path.ts";
import { sendFile } from "../files/download.ts";
import { IncomingFile } from "../files/file-io.ts";
import { ApiError, errnoOf, toApiError } from "../http/api-error.ts";
import type { Call, Handler } from "../http/call.ts";
import { isFormData, readForm } from "../http/form-data.ts";
import { sendJson } from "../http/send.ts";
import { isFolder } from "./filesystem-service.ts";
import { namedUser } from "./named-user.ts";

const place = ({ query, daemon }: Call) => namedUser(daemon.environment, query.get("username") ?? "");

export const getFiles: Handler = (call) =>
  refusing(call, async () => {
    const path = pathFromBody(requiredPath(call), place(call).base);
    if (isFolder(path)) throw new ApiError(400, `${toText(path)} is a directory.`);
    await sendFile(call, path).catch((error: unknown) => {
      throw errnoOf(error) === undefined ? error : toApiError(error, toText(path));
    });
  });

export const postFiles: Handler = (call) =>
  refusing(call, async () => {
    const { base, user } = place(call);
    const given = call.query.get("path") ?? "";
    const body = uncompressed(call);
    const written: BytePath[] = [];
    if (isFormData(call.req.headers["content-type"])) {
      await storeForm(call, body, (filename) => pathFromBody(given || filename, base), user, written);
    } else {
      const path = pathFromBody(requiredPath(call), base);
      await storing(path, user, async (file) => {
        for await (const chunk of body) await file.write(chunk);
      });
      written.push(path);
    }
    const entries = written.map((path) => ({ path: toText(path), name: toText(baseName(path)), type: "file" }));
    sendJson(call.res, 200, entries);
  });

/** Every file of the form takes its place when it is complete, before the next one is read. */
async function storeForm(
  { req }: Call,
  body: AsyncIterable<Buffer>,
  pathOf: (filename: string) => BytePath,
  user: SandboxUser | undefined,
  written: BytePath[],
): Promise<void> {
  let open: IncomingFile | null = null;
  try {
    await readForm(body, req.headers["content-type"], ({ name, filename }) => {
      if (name !== "file" || !filename) return { write: () => {} };
      const path = pathOf(filename);
      const file = new IncomingFile(path, user);
      open = file;
      return {
        write: (chunk) => file.write(chunk),
        end: () => {
          file.commit({ mode: undefined, user });
          written.push(path);
        },
      };
    });
  } finally {
    (open as IncomingFile | null)?.discard();
  }
  if (written.length === 0) throw new ApiError(400, 'The form has no part "file" with a file name.');
}

async function storing(
  path: BytePath,
  user: SandboxUser | undefined,
  fill: (file: IncomingFile) => Promise<void>,
): Promise<void> {
  const file = new IncomingFile(path, user);
  try {
    await fill(file);
    file.commit({ mode: undefined, user });
  } finally {
    file.discard();
  }
}

function uncompressed({ req }: Call): AsyncIterable<Buffer> {
  const encoding = req.headers["content-encoding"] ?? "identity";
  if (encoding === "identity") return req;
  if (encoding !== "gzip") throw new ApiError(400, "The only compression understood here is gzip.");
  return pipeline(req, createGunzip(), () => {}); // a failure shows to the reader of the stream
}

function requiredPath({ query }: Call): string {
  const path = query.get("path") ?? "";
  if (path === "") throw new ApiError(400, 'The query parameter "path" is required.');
  return path;
}

/** Failures in the form that E2B's clients read. */
async function refusing(call: Call, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (call.res.headersSent) throw error;
    const { status, message } = toApiError(error);
    const isFull = ["ENOSPC", "EDQUOT"].includes(errnoOf(error) ?? "");
    const code = isFull ? 507 : status === 422 ? 400 : status;
    sendJson(call.res, code, { code, message });
  }
}
