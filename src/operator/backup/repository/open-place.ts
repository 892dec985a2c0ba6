/** Opens the place that an operator names: a folder, or a prefix of an S3 bucket. */
import { UsageError } from "../../../lib/usage-error.ts";
import { parseS3Location } from "../../../s3/client/s3-location.ts";
import { folderPlace } from "./folder-place.ts";
import type { Place } from "./place.ts";
import { type S3Access, s3Place } from "./s3-place.ts";

export function openPlace(target: string, access: S3Access): Place {
  if (!target.startsWith("s3://")) return folderPlace(target);
  const location = parseS3Location(target);
  if (location === null)
    throw new UsageError(`${target} is no place in S3.`, "write s3://BUCKET or s3://BUCKET/PREFIX");
  return s3Place({ shown: target, ...location }, access);
}
