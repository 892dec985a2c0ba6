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

export const driveTokenHandlers: readonly Implementation[] = [
  implement(driveAccessToken, async (call, deps) => {
    const name = call.params.driveName ?? "";
    const drive = await deps.store.resources.get(
      { workspace: workspaceOf(call).name, kind: "drive", parent: "" },
      name,
    );
    if (!drive || drive.deletedAt !== null) throw notFound(`drive '${name}'`);
    const access = await accessOf(call, drive, deps);
    if (!access) throw new PlatformError("forbidden", `The permissions of drive '${name}' do not let you in.`);
    const now = Math.floor(deps.clock.now() / SECOND_MS);
    const { endsAt = Number.POSITIVE_INFINITY } = call.caller;
    const seconds = Math.min(TOKEN_MS / SECOND_MS, Math.floor(endsAt / SECOND_MS) - now);
    const token = await sign(drive, access, call.caller, { from: now, seconds }, deps);
    call.setHeader("cache-control", "no-store");
    return { access_token: token, expires_in: seconds, token_type: "Bearer" as const };
  }),

  implement(driveJwks, async ({ setHeader }, { store }) => {
    setHeader("cache-control", `public, max-age=${JWKS_CACHE_SECONDS}`);
    const keys = await store.signingKeys.publicKeys(DRIVE_SIGNING_PURPOSE);
    return { keys: keys.map((key) => JSON.parse(key) as Record<string, unknown>) };
  }),
];

/** A caller without the write scope gets a read-only token. */
async function accessOf({ caller, role }: Asker, drive: Resource, deps: Platform): Promise<DriveAccess | null> {
  const access = await callerAccess({ ...caller, role }, drive, deps);
  const isReader = caller.subjectType !== "workload" && !mayWrite(caller);
  return access && isReader ? { ...access, mode: "read" } : access;
}

const mayWrite = ({ scopes }: Caller): boolean => scopes === null || scopes.has("admin") || scopes.has(WRITE_SCOPE);

async function sign(
  drive: Resource,
  access: DriveAccess,
  caller: Caller,
  { from, seconds }: { from: number; seconds: number },
  deps: Platform,
): Promise<string> {
  const { SignJWT } = await import("jose"); // loaded with the first token: few servers ever sign one
  const { id, privateKey } = await deps.store.signingKeys.current(DRIVE_SIGNING_PURPOSE, generatePair);
  return new SignJWT({
    workspace: drive.workspace,
    drive: drive.name,
    drive_uid: drive.uid,
    mode: access.mode,
    path: access.path,
    sub_type: caller.subjectType,
    ...(caller.right === null ? {} : { right: caller.right }),
  })
    .setProtectedHeader({ alg: "EdDSA", kid: id, typ: "JWT" })
    .setIssuer(deps.settings.publicUrl)
    .setSubject(caller.subject)
    .setAudience(DRIVE_AUDIENCE)
    .setIssuedAt(from)
    .setExpirationTime(from + seconds)
    .setJti(randomWord(20))
    .sign(createPrivateKey(privateKey));
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
