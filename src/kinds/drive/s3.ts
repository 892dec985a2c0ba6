/** A drive as a bucket of the S3 door: its address, and credentials for the caller. */
import { PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Implementation, implement, type Settings } from "../port.ts";
import { driveS3Credentials } from "./operations.ts";
import { makeS3Credentials } from "./s3-sessions.ts";
import { openedDrive, validity } from "./tokens.ts";

const DEFAULT_SECONDS = 3600;

/** Null where this server has no S3 door. A bucket has the name of its drive. */
export const s3UrlOf = ({ name }: Pick<Resource, "name">, { s3Url }: Pick<Settings, "s3Url">): string | null =>
  s3Url === null ? null : `${s3Url}/${name}`;

export const driveS3Handlers: readonly Implementation[] = [
  implement(driveS3Credentials, async (call, deps) => {
    const { drive, access } = await openedDrive(call, deps);
    const { s3Url, region } = deps.settings;
    if (s3Url === null)
      throw new PlatformError(
        "unprocessable",
        "This server has no S3 door. Its operator opens one with BERTH_S3_PORT.",
      );
    const { now, seconds } = validity(call.caller, call.body?.durationSeconds ?? DEFAULT_SECONDS, deps);
    const made = await makeS3Credentials({ drive, access, holder: call.caller, now, seconds }, deps);
    call.setHeader("cache-control", "no-store");
    return { ...made, endpoint: s3Url, bucket: drive.name, region };
  }),
];
