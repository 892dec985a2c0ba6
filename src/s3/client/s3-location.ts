/** A place in S3 as operators write it: `s3://BUCKET` or `s3://BUCKET/PREFIX`. */
export interface S3Location {
  bucket: string;
  /** Without slashes at its ends. */
  prefix: string;
}

const LOCATION = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/;

/** Null for a text that is no such place. */
export function parseS3Location(text: string): S3Location | null {
  const [, bucket, prefix = ""] = LOCATION.exec(text) ?? [];
  if (bucket === undefined || prefix.split("/").includes("..")) return null;
  return { bucket, prefix: prefix.replace(/^\/+|\/+$/g, "") };
}
