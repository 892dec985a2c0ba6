/**
 * Temporary credentials for the S3 door. The session token is a JWT about one drive, like a drive token but for another
 * audience: a presigned address shows its session token, so a session token opens nothing by itself. The secret is
 * derived from the token's id, and nothing is stored.
 */
import { createHmac } from "node:crypto";
import type { MadeBy } from "../../contract/preview-tokens.ts";
import { SECOND_MS, toIso } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";
import type { DriveAccess } from "./permissions.ts";
import { createDriveTokenCheck, type DriveClaims, type DriveTokenDeps } from "./token-check.ts";
import { type DriveTokenWish, signDriveToken } from "./tokens.ts";

const AUDIENCE = "drive-s3-sessions";

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiration: string;
}

/** Valid credentials, looked at for a request about one bucket. */
export interface DriveSession {
  secretAccessKey: string;
  workspace: string;
  holder: MadeBy;
  /** Null where the credentials open no drive of the bucket's name. */
  opened: { drive: Resource; access: DriveAccess } | null;
  /** The drives that the credentials open; a page may have fewer than `max`. Throws PlatformError for a wrong `after`. */
  drives(page: { after: string; max: number }): Promise<{ drives: Resource[]; next: string }>;
  /** Called once the signature is checked. */
  noteUse(): void;
}

export interface ExchangedCredentials extends Pick<DriveSession, "holder"> {
  credentials: S3Credentials;
  drive: { workspace: string; name: string };
}

type SecretDeps = Pick<Platform, "keyFor">;

export async function makeS3Credentials(
  wish: Omit<DriveTokenWish, "audience">,
  deps: Pick<Platform, "store" | "settings"> & SecretDeps,
): Promise<S3Credentials> {
  const { token, id } = await signDriveToken({ ...wish, audience: AUDIENCE }, deps);
  return {
    accessKeyId: accessKeyOf(id),
    secretAccessKey: secretOf(id, deps),
    sessionToken: token,
    expiration: toIso((wish.now + wish.seconds) * SECOND_MS),
  };
}

export function createS3Sessions(deps: DriveTokenDeps & SecretDeps) {
  const checkSession = createDriveTokenCheck(deps, AUDIENCE);
  const checkDriveToken = createDriveTokenCheck(deps);
  return {
    /** Null for a session that has ended or whose maker could not get it again now. */
    async sessionOf(accessKeyId: string, token: string, bucket: string): Promise<DriveSession | null> {
      const claims = await checkSession(token);
      if (!claims || accessKeyOf(claims.jti) !== accessKeyId) return null;
      const { workspace, drive_uid: uid, mode, path } = claims;
      const drive = await deps.store.resources.getByUid(workspace, uid);
      if (!drive) return null;
      return {
        secretAccessKey: secretOf(claims.jti, deps),
        ...{ workspace, holder: holderOf(claims) },
        opened: drive.name === bucket ? { drive, access: { mode, path } } : null,
        drives: async () => ({ drives: [drive], next: "" }),
        noteUse: () => {},
      };
    },

    /** Credentials in exchange for a drive token; they end with the token. Null for any other text. */
    async exchange(token: string, secondsMax: number | null): Promise<ExchangedCredentials | null> {
      const claims = await checkDriveToken(token);
      if (!claims) return null;
      const now = Math.floor(deps.clock.now() / SECOND_MS);
      const seconds = Math.min(secondsMax || Number.POSITIVE_INFINITY, claims.exp - now);
      const access: DriveAccess = { mode: claims.mode, path: claims.path };
      const [drive, holder] = [driveOf(claims), holderOf(claims)];
      return { credentials: await makeS3Credentials({ drive, access, holder, now, seconds }, deps), drive, holder };
    },
  };
}

const driveOf = ({ drive_uid: uid, workspace, drive: name }: DriveClaims) => ({ uid, workspace, name });

const holderOf = ({ sub: subject, sub_type: subjectType, right = null }: DriveClaims): MadeBy => ({
  subject,
  subjectType,
  right,
});

const accessKeyOf = (id: string): string => id.toUpperCase();

const secretOf = (id: string, { keyFor }: SecretDeps): string =>
  createHmac("sha256", keyFor("drive-s3-sessions")).update(id).digest("base64url");
