/** A failure with a status and a sentence for the caller. Every other error is a bug and becomes a 500. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** File system errors are caused by the request: 404 for a missing path, 422 for a refused operation. */
const STATUS_OF_ERRNO: Record<string, number> = {
  ENOENT: 404,
  ENOTDIR: 422,
  EISDIR: 422,
  ENOTEMPTY: 422,
  EEXIST: 422,
  EACCES: 422,
  EPERM: 422,
  EROFS: 422,
  ENOSPC: 422,
  EDQUOT: 422,
  EFBIG: 422,
  ELOOP: 422,
  ENAMETOOLONG: 422,
  EINVAL: 422,
  EBUSY: 422,
  ETXTBSY: 422,
  EXDEV: 422,
  ENXIO: 422,
  ENODEV: 422,
  EIO: 422,
  EAGAIN: 422,
  EMFILE: 422,
  ENFILE: 422,
  EMLINK: 422,
};

const SENTENCE_OF_ERRNO: Record<string, string> = {
  ENOENT: "no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  EISDIR: "it is a directory",
  ENOTEMPTY: "the directory is not empty",
  EEXIST: "it exists already",
  EACCES: "permission denied",
  EPERM: "the operation is not permitted",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  ELOOP: "too many symbolic links",
  ENAMETOOLONG: "the name is too long",
  EBUSY: "the device or resource is busy",
};

export const errnoOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

export function toApiError(error: unknown, subject?: string): ApiError {
  if (error instanceof ApiError) return error;
  const errno = errnoOf(error);
  const status = errno === undefined ? undefined : STATUS_OF_ERRNO[errno];
  if (errno === undefined || status === undefined) {
    return new ApiError(500, error instanceof Error ? error.message : String(error));
  }
  const sentence = SENTENCE_OF_ERRNO[errno] ?? errno;
  return new ApiError(status, subject === undefined ? sentence : `${subject}: ${sentence}`);
}
