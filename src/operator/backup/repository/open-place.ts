/** Opens the place that an operator names: a folder, or a prefix of an S3 bucket. */
import { UsageError } from "../../../lib/usage-error.ts";
import { folderPlace } from "./folder-place.ts";
import type { Place } from "./place.ts";
import { type S3Access, s3Place } from "./s3-place.ts";

const S3 = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/;

export function openPlace(target: string, access: S3Access): Place {
  if (!target.startsWith("s3://")) return folderPlace(target);
  const [, bucket, prefix = ""] = S3.exec(target) ?? [];
  if (bucket === undefined || prefix.split("/").includes(".."))
    throw new UsageError(`${target} is no place in S3.`, "write s3://BUCKET or s3://BUCKET/PREFIX");
  return s3Place({ shown: target, bucket, prefix: prefix.replace(/^\/+|\/+$/g, "") }, access);
}
