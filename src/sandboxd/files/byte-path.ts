/**
 * Paths as the kernel sees them: bytes. A file name may hold newlines and invalid UTF-8, and must still be listed, read
 * and deleted. Inside the daemon a path is a string with one character per byte, so that splitting and joining stay
 * ordinary string work; it becomes a Buffer at the file system and UTF-8 text in answers.
 */
import { posix } from "node:path";
import { ApiError } from "../http/api-error.ts";

declare const bytes: unique symbol;
export type BytePath = string & { readonly [bytes]: true };

/** Longer than PATH_MAX of Linux, so the kernel's own limit answers first. */
const PATH_BYTES_MAX = 8192;

export const fromText = (text: string): BytePath => checked(Buffer.from(text, "utf8").toString("latin1"));
export const fromBytes = (buffer: Uint8Array): BytePath => checked(Buffer.from(buffer).toString("latin1"));
export const toBytes = (path: BytePath): Buffer => Buffer.from(path, "latin1");
export const toText = (path: BytePath): string => Buffer.from(path, "latin1").toString("utf8");

export const joinPath = (folder: BytePath, name: BytePath): BytePath =>
  (folder === "/" ? `/${name}` : `${folder}/${name}`) as BytePath;
export const baseName = (path: BytePath): BytePath => (posix.basename(path) || "/") as BytePath;
export const folderOf = (path: BytePath): BytePath => posix.dirname(path) as BytePath;

export interface PathBase {
  workDir: string;
  home: string;
}

/**
 * The path behind a route prefix, still as it came over the wire. It is absolute when a slash of its own follows the
 * prefix, written `//x` or `%2Fx`; otherwise it is relative to the work dir. Nothing is decoded or collapsed before that
 * is decided: `/filesystem/etc` and `/filesystem//etc` are different files.
 */
export function pathFromUrl(raw: string, base: PathBase): BytePath {
  const absolute = raw.startsWith("/") || /^%2f/i.test(raw);
  const decoded = percentDecode(raw);
  return absolute ? resolveFrom("/" as BytePath, decoded) : fromDecoded(decoded, base);
}

/** A path written by a person or a program in a JSON body: absolute, relative to the work dir, or starting with `~`. */
export const pathFromBody = (text: string, base: PathBase): BytePath => fromDecoded(fromText(text), base);

function fromDecoded(decoded: BytePath, base: PathBase): BytePath {
  if (decoded === "~" || decoded.startsWith("~/")) {
    return resolveFrom(fromText(base.home), decoded.slice(1).replace(/^\/+/, "") as BytePath);
  }
  return resolveFrom(fromText(base.workDir), decoded);
}

const resolveFrom = (folder: BytePath, path: BytePath): BytePath => checked(posix.resolve("/", folder, path));

function percentDecode(raw: string): BytePath {
  if (/%(?![0-9a-fA-F]{2})/.test(raw)) {
    throw new ApiError(400, "The path has a % that is not followed by two hexadecimal digits.");
  }
  return checked(raw.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))));
}

function checked(path: string): BytePath {
  if (path.includes("\0")) throw new ApiError(400, "The path has a NUL byte in it.");
  if (path.length > PATH_BYTES_MAX) throw new ApiError(400, `The path is longer than ${PATH_BYTES_MAX} bytes.`);
  return path as BytePath;
}
