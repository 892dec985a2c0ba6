/** Tokens that open one drive. They are Ed25519 JWTs, so a file server can check them with the public keys alone. */
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import type { Caller } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";
import { HOUR_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { KeyPair } from "../../store/people/signing-keys.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { callerAccess } from "./caller-access.ts";
import { driveAccessToken, driveJwks } from "./operations.ts";
import type { DriveAccess } from "./permissions.ts";

export const DRIVE_AUDIENCE = "drives";
export const DRIVE_SIGNING_PURPOSE = "drive-tokens";
/** The scope that a caller needs to write to a drive. */
const WRITE_SCOPE = "drives:create";
/** Lifetime of a token: leaves a mount time to renew it and limits the use of a leaked token. */
const TOKEN_MS = HOUR_MS;
/** How long checkers may cache the public keys. Short, because a new signing key is used at once. */
const JWKS_CACHE_SECONDS = 300;

type Asker = Pick<Call, "caller" | "role">;
type Clocked = Pick<Platform, "clock">;

export const driveTokenHandlers: readonly Implementation[] = [
  implement(driveAccessToken, async (call, deps) => {
    const { drive, access } = await openedDrive(call, deps);
    const { now, seconds } = validity(call.caller, TOKEN_MS / SECOND_MS, deps);
    const { token } = await signDriveToken(
      { drive, access, holder: call.caller, audience: DRIVE_AUDIENCE, now, seconds },
      deps,
    );
    call.setHeader("cache-control", "no-store");
    return { access_token: token, expires_in: seconds, token_type: "Bearer" as const };
  }),

  implement(driveJwks, async ({ setHeader }, { store }) => {
    setHeader("cache-control", `public, max-age=${JWKS_CACHE_SECONDS}`);
    const keys = await store.signingKeys.publicKeys(DRIVE_SIGNING_PURPOSE);
    return { keys: keys.map((key) => JSON.parse(key) as Record<string, unknown>) };
  }),
];

/** The drive of a call, and what the caller may do with it; refused where that is nothing. */
export async function openedDrive(call: Call, deps: Platform): Promise<{ drive: Resource; access: DriveAccess }> {
  const name = call.params.driveName ?? "";
  const drive = await deps.store.resources.get({ workspace: workspaceOf(call).name, kind: "drive", parent: "" }, name);
  if (!drive || drive.deletedAt !== null) throw notFound(`drive '${name}'`);
  const access = await accessOf(call, drive, deps);
  if (!access) throw new PlatformError("forbidden", `The permissions of drive '${name}' do not let you in.`);
  return { drive, access };
}

/** No credential outlives the caller's own. */
export function validity(
  { endsAt = Number.POSITIVE_INFINITY }: Pick<Caller, "endsAt">,
  secondsMax: number,
  deps: Clocked,
) {
  const now = Math.floor(deps.clock.now() / SECOND_MS);
  return { now, seconds: Math.min(secondsMax, Math.floor(endsAt / SECOND_MS) - now) };
}

/** A caller without the write scope only reads. */
export async function accessOf(
  { caller, role }: Asker,
  drive: Resource,
  deps: Pick<Platform, "store" | "settings">,
): Promise<DriveAccess | null> {
  const access = await callerAccess({ ...caller, role }, drive, deps);
  const isReader = caller.subjectType !== "workload" && !mayWrite(caller);
  return access && isReader ? { ...access, mode: "read" } : access;
}

const mayWrite = ({ scopes }: Caller): boolean => scopes === null || scopes.has("admin") || scopes.has(WRITE_SCOPE);

export interface DriveTokenWish {
  drive: Pick<Resource, "workspace" | "name" | "uid">;
  access: DriveAccess;
  holder: Pick<Caller, "subject" | "subjectType" | "right">;
  audience: string;
  /** Seconds since 1970. */
  now: number;
  seconds: number;
}

/** Returns the token and its id. */
export async function signDriveToken(
  { drive, access, holder, audience, now, seconds }: DriveTokenWish,
  deps: Pick<Platform, "store" | "settings">,
): Promise<{ token: string; id: string }> {
  const { SignJWT } = await import("jose"); // loaded with the first token: few servers ever sign one
  const jti = randomWord(20);
  const { id, privateKey } = await deps.store.signingKeys.current(DRIVE_SIGNING_PURPOSE, generatePair);
  const token = await new SignJWT({
    workspace: drive.workspace,
    drive: drive.name,
    drive_uid: drive.uid,
    mode: access.mode,
    path: access.path,
    sub_type: holder.subjectType,
    ...(holder.right === null ? {} : { right: holder.right }),
  })
    .setProtectedHeader({ alg: "EdDSA", kid: id, typ: "JWT" })
    .setIssuer(deps.settings.publicUrl)
    .setSubject(holder.subject)
    .setAudience(audience)
    .setIssuedAt(now)
    .setExpirationTime(now + seconds)
    .setJti(jti)
    .sign(createPrivateKey(privateKey));
  return { token, id: jti };
}

function generatePair(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const id = randomWord(16);
  return {
    id,
    publicKey: JSON.stringify({ ...publicKey.export({ format: "jwk" }), kid: id, alg: "EdDSA", use: "sig" }),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  };
}
