/**
 * Long-lived credentials for the S3 door: an API key of a service account, in the form that S3 clients sign with. The
 * access key id names the API key and the secret is derived from it, so nothing is stored, and the credentials have the
 * scopes and the end of the API key. They open each drive of the workspace that the account may use.
 */
import { createHmac } from "node:crypto";
import type { Authenticator } from "../../auth/authenticator.ts";
import { scopeRefusal } from "../../auth/authorize.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";
import { driveS3Credentials } from "./operations.ts";
import type { DriveAccess } from "./permissions.ts";
import type { DriveSession } from "./s3-sessions.ts";
import { accessOf } from "./tokens.ts";

/** Access key ids have upper-case letters and digits only: some clients check that. */
const PREFIX = "BERTH";
const ID = /^BERTH([0-9A-F]{8})([0-9A-F]{4})([0-9A-F]{4})([0-9A-F]{4})([0-9A-F]{12})$/;
type SecretDeps = Pick<Platform, "keyFor">;

export interface S3Key {
  accessKeyId: string;
  secretAccessKey: string;
}

export const s3KeyOf = (apiKeyId: string, deps: SecretDeps): S3Key => ({
  accessKeyId: `${PREFIX}${apiKeyId.replaceAll("-", "").toUpperCase()}`,
  secretAccessKey: createHmac("sha256", deps.keyFor("drive-s3-keys")).update(apiKeyId).digest("base64url"),
});

const apiKeyIdIn = (accessKeyId: string): string | null =>
  ID.exec(accessKeyId)?.slice(1).join("-").toLowerCase() ?? null;

type KeyDeps = Pick<Platform, "store" | "settings"> & SecretDeps & Pick<Authenticator, "callerOfKey" | "noteUse">;

export function createS3Keys(deps: KeyDeps) {
  /** Null for a key that is gone, has ended, lacks the scope, or belongs to a person: people ask for sessions. */
  return async (accessKeyId: string, bucket: string): Promise<DriveSession | null> => {
    const id = apiKeyIdIn(accessKeyId);
    const caller = id === null ? null : await deps.callerOfKey(id);
    if (id === null || caller?.subjectType !== "service_account" || !caller.bound) return null;
    if (scopeRefusal(driveS3Credentials, caller) !== null) return null;
    const { workspace, role } = caller.bound;
    const place = { workspace, kind: "drive", parent: "" };
    const accessTo = (drive: Resource): Promise<DriveAccess | null> => accessOf({ caller, role }, drive, deps);

    const drive = bucket === "" ? null : await deps.store.resources.get(place, bucket);
    const access = drive && drive.deletedAt === null ? await accessTo(drive) : null;
    const { subject, subjectType, right } = caller;
    return {
      secretAccessKey: s3KeyOf(id, deps).secretAccessKey,
      ...{ workspace, holder: { subject, subjectType, right } },
      opened: drive && access ? { drive, access } : null,
      async drives({ after, max }) {
        const query = parseListQuery({ cursor: after, limit: max }, { limitDefault: max, limitMax: max });
        const { items, nextCursor } = await deps.store.resources.list(place, query);
        const opened = await Promise.all(items.map(accessTo));
        return { drives: items.filter((_, at) => opened[at] !== null), next: nextCursor };
      },
      noteUse: () => deps.noteUse(id),
    };
  };
}
