/** Errors of the registry's protocol: clients read `errors[].code`. */
import { type ErrorCode, PlatformError } from "./errors.ts";

export type RegistryWord =
  | "BLOB_UNKNOWN"
  | "BLOB_UPLOAD_INVALID"
  | "BLOB_UPLOAD_UNKNOWN"
  | "DENIED"
  | "DIGEST_INVALID"
  | "MANIFEST_BLOB_UNKNOWN"
  | "MANIFEST_INVALID"
  | "MANIFEST_UNKNOWN"
  | "NAME_INVALID"
  | "NAME_UNKNOWN"
  | "RANGE_INVALID"
  | "SIZE_INVALID"
  | "TAG_INVALID"
  | "TOOMANYREQUESTS"
  | "UNAUTHORIZED"
  | "UNSUPPORTED";

export const registryError = (
  code: ErrorCode,
  word: RegistryWord,
  message: string,
  options: { headers?: Record<string, string>; cause?: unknown } = {},
): PlatformError => new PlatformError(code, message, { ...options, body: { errors: [{ code: word, message }] } });
