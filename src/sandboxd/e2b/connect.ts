/**
 * The Connect protocol as E2B's clients speak it: messages in JSON, one request message, and one answer or a stream of
 * answers. A message of a stream is framed with a flag byte and a length of four bytes; the last frame ends the stream
 * and carries the error, if there is one.
 */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { ApiError, errnoOf, toApiError } from "../http/api-error.ts";
import { type Call, type Handler, readBody } from "../http/call.ts";
import { sendJson, writeChunk } from "../http/send.ts";

export type Message = Record<string, unknown>;

export interface Rpc {
  call: Call;
  message: Message;
  /** Time that the client gives the whole call; null: no limit. */
  timeoutMs: number | null;
  /** Pause after which a silent stream sends a keep-alive message. */
  keepaliveMs: number;
}

/** False once the client is gone. */
export type Send = (message: Message) => Promise<boolean>;

export type Method = { unary(rpc: Rpc): Message | Promise<Message> } | { stream(rpc: Rpc, send: Send): Promise<void> };

const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
const HEADER_BYTES = 5;
const FLAG_COMPRESSED = 1;
const FLAG_END = 2;
const KEEPALIVE_DEFAULT_MS = 90_000;
/** The longest time of a timer. One with a longer time fires at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;
const STREAM_TYPE = "application/connect+json";

/** A failure with a code of the protocol, where the HTTP status alone does not tell it. */
export class RpcError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = "RpcError";
    this.code = code;
  }
}

/** Serves the methods of one service; the method's name is the last part of the path. */
export function serviceOf(methods: Record<string, Method>): Handler {
  return async (call) => {
    const name = call.params[0] ?? "";
    const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
    const streams = call.req.headers["content-type"]?.startsWith("application/connect+") === true;
    if (!isJson(call, streams)) return void call.res.writeHead(415).end();
    if (streams) return serveStream(call, method);
    try {
      if (!method || !("unary" in method)) throw unimplemented(name);
      const rpc = rpcOf(call, parse(await decompressed(await readBody(call), call.req.headers["content-encoding"])));
      sendJson(call.res, 200, await method.unary(rpc));
    } catch (error) {
      const { code, message } = toRpcError(error);
      sendJson(call.res, STATUS_OF[code] ?? 500, { code, message });
    }
  };
}

const isJson = ({ req }: Call, streams: boolean): boolean =>
  (streams ? /^application\/connect\+json\b/i : /^application\/json\b/i).test(req.headers["content-type"] ?? "");

async function serveStream(call: Call, method: Method | undefined): Promise<void> {
  const { req, res } = call;
  res.writeHead(200, { "Content-Type": STREAM_TYPE });
  let end: Message = {};
  try {
    if (!method || !("stream" in method)) throw unimplemented(call.params[0] ?? "");
    const message = parse(await onlyFrame(await readBody(call), req.headers["connect-content-encoding"]));
    await method.stream(rpcOf(call, message), (sent) => writeChunk(res, frame(0, sent)));
  } catch (error) {
    end = { error: toRpcError(error) };
  }
  res.end(frame(FLAG_END, end));
}

function frame(flags: number, message: Message): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const framed = Buffer.allocUnsafe(HEADER_BYTES + body.byteLength);
  framed.writeUInt8(flags, 0);
  framed.writeUInt32BE(body.byteLength, 1);
  body.copy(framed, HEADER_BYTES);
  return framed;
}

/** The request of a stream of answers has one message. */
async function onlyFrame(body: Buffer, encoding: string | string[] | undefined): Promise<Buffer> {
  const length = body.byteLength >= HEADER_BYTES ? body.readUInt32BE(1) : -1;
  if (body.byteLength !== HEADER_BYTES + length) throw new RpcError("invalid_argument", "One message is expected.");
  const message = body.subarray(HEADER_BYTES);
  return body.readUInt8(0) & FLAG_COMPRESSED ? decompressed(message, encoding) : message;
}

async function decompressed(body: Buffer, encoding: string | string[] | undefined): Promise<Buffer> {
  if (encoding === undefined || encoding === "identity") return body;
  if (encoding !== "gzip") throw new RpcError("unimplemented", "The only compression understood here is gzip.");
  return promisify(gunzip)(body, { maxOutputLength: MESSAGE_BYTES_MAX }).catch(() => {
    throw new RpcError("invalid_argument", "The message is not valid gzip, or too large.");
  });
}

function parse(body: Buffer): Message {
  try {
    const parsed: unknown = body.byteLength === 0 ? {} : JSON.parse(body.toString("utf8"));
    if (isMessage(parsed)) return parsed;
  } catch {
    // refused below
  }
  throw new RpcError("invalid_argument", "The message is not a JSON object.");
}

export const isMessage = (value: unknown): value is Message =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function rpcOf(call: Call, message: Message): Rpc {
  const header = (name: string): number => Number(call.req.headers[name] ?? Number.NaN);
  const timeoutMs = header("connect-timeout-ms");
  const keepaliveS = header("keepalive-ping-interval");
  return {
    call,
    message,
    timeoutMs: timeoutMs > 0 ? timeoutMs : null,
    keepaliveMs: Math.min(keepaliveS > 0 ? keepaliveS * 1000 : KEEPALIVE_DEFAULT_MS, TIMER_MS_MAX),
  };
}

const unimplemented = (name: string): RpcError =>
  new RpcError("unimplemented", `${name || "This method"} is not supported by this platform.`);

const CODE_OF: Record<number, string> = {
  400: "invalid_argument",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  409: "already_exists",
  413: "resource_exhausted",
  422: "invalid_argument",
  503: "unavailable",
};

/** Statuses of the protocol's codes in answers that are not streams. */
const STATUS_OF: Record<string, number> = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  resource_exhausted: 429,
  deadline_exceeded: 504,
  unimplemented: 501,
  unavailable: 503,
};

function toRpcError(error: unknown): { code: string; message: string } {
  if (error instanceof RpcError) return { code: error.code, message: error.message };
  const { status, message } = toApiError(error);
  const code = CODE_OF[status] ?? "internal";
  if (code === "internal" && !(error instanceof ApiError) && errnoOf(error) !== "ECONNRESET") console.error(error);
  return { code, message };
}

/** A text member of a message. Absent, null and "" are the same: the protocol leaves out empty texts. */
export function textOf(message: Message, name: string): string {
  const value = message[name] ?? "";
  if (typeof value !== "string") throw new RpcError("invalid_argument", `"${name}" must be a text.`);
  return value;
}

/** A member that is itself a message; absent counts as empty. */
export function messageOf(message: Message, name: string): Message {
  const value = message[name] ?? {};
  if (!isMessage(value)) throw new RpcError("invalid_argument", `"${name}" must be an object.`);
  return value;
}
