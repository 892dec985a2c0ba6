/** A drive as a bucket of the S3 door: its address, and credentials for the caller. */
import { PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Implementation, implement, type Platform } from "../port.ts";
import { driveS3Credentials } from "./operations.ts";
import { makeS3Credentials } from "./s3-sessions.ts";
import { openedDrive, validity } from "./tokens.ts";

const DEFAULT_SECONDS = 3600;

/** Null where this server has no S3 door, and for a drive that its door does not reach. A bucket has the name of its drive. */
export function s3UrlOf(
  { name, node }: Resource,
  { settings, nodes }: Pick<Platform, "settings" | "nodes">,
): string | null {
  const isReached = settings.s3ReachesAll || node === null || node === nodes.self.id || nodes.shared;
  return settings.s3Url !== null && isReached ? `${settings.s3Url}/${name}` : null;
}

export function requireS3Url({ settings }: Pick<Platform, "settings">): string {
  if (settings.s3Url !== null) return settings.s3Url;
  throw new PlatformError(
    "unprocessable",
    "This server has no S3 door. Its operator opens one with BERTH_S3_PORT or BERTH_DOMAIN.",
  );
}

const s3Credentials = implement(driveS3Credentials, async (call, deps) => {
  const { drive, access } = await openedDrive(call, deps);
  const endpoint = requireS3Url(deps);
  const { now, seconds } = validity(call.caller, call.body?.durationSeconds ?? DEFAULT_SECONDS, deps);
  const made = await makeS3Credentials({ drive, access, holder: call.caller, now, seconds }, deps);
  call.setHeader("cache-control", "no-store");
  return { ...made, endpoint, bucket: drive.name, region: deps.settings.region };
});

/** The server that has the drive answers, with the address of its own door. */
const nodeOfDrive: Implementation["node"] = async ({ workspace, params }, { store }) => {
  const drive = await store.resources.get({ workspace, kind: "drive", parent: "" }, params.driveName ?? "");
  return drive?.node ?? null;
};

export const driveS3Handlers: readonly Implementation[] = [{ ...s3Credentials, node: nodeOfDrive }];
