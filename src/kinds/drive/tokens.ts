/**
 * Tokens that open one drive: Ed25519 JWTs, so that whoever serves the files can check them with the public keys
 * alone.
 */
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import type { Caller } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";
import { HOUR_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { KeyPair } from "../../store/people/signing-keys.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { driveAccessToken, driveJwks } from "./operations.ts";
import { type DriveAccess, type DriveRule, driveAccess, workloadLabels } from "./permissions.ts";

export const DRIVE_AUDIENCE = "drives";
const PURPOSE = "drive-tokens";
/** Long enough for a mount to renew it calmly, short enough that a lost one is soon worthless. */
const TOKEN_MS = HOUR_MS;
/** Checkers may keep the public keys for a while; a new key is used right away, so not for long. */
const JWKS_CACHE_SECONDS = 300;

export const driveTokenHandlers: readonly Implementation[] = [
  implement(driveAccessToken, async (call, deps) => {
    const name = call.params.driveName ?? "";
    const drive = await deps.store.resources.get(
      { workspace: workspaceOf(call).name, kind: "drive", parent: "" },
      name,
    );
    if (!drive || drive.deletedAt !== null) throw notFound(`drive '${name}'`);
    const access = await accessOf(call.caller, drive, deps);
    if (!access) throw new PlatformError("forbidden", `The permissions of drive '${name}' do not let you in.`);
    const token = await sign(drive, access, call.caller, deps);
    call.setHeader("cache-control", "no-store");
    return { access_token: token, expires_in: TOKEN_MS / SECOND_MS, token_type: "Bearer" as const };
  }),

  implement(driveJwks, async ({ setHeader }, { store }) => {
    setHeader("cache-control", `public, max-age=${JWKS_CACHE_SECONDS}`);
    const keys = await store.signingKeys.publicKeys(PURPOSE);
    return { keys: keys.map((key) => JSON.parse(key) as Record<string, unknown>) };
  }),
];

/** People and service accounts have the whole drive, as they may change its rules anyway; workloads have what the rules say. */
async function accessOf(caller: Caller, drive: Resource, { store, settings }: Platform): Promise<DriveAccess | null> {
  if (caller.subjectType !== "workload") return { mode: "read-write", path: "/" };
  const identity = await store.keys.getServiceAccount(drive.workspace, caller.subject);
  const workload = identity?.workload && (await store.resources.getByUid(drive.workspace, identity.workload));
  if (!workload) return null;
  return driveAccess(drive.spec.permissions as DriveRule[] | undefined, workloadLabels(workload, settings.brand));
}

async function sign(drive: Resource, access: DriveAccess, caller: Caller, deps: Platform): Promise<string> {
  const { SignJWT } = await import("jose"); // with the first token: few servers ever sign one
  const { id, privateKey } = await deps.store.signingKeys.current(PURPOSE, generatePair);
  const now = Math.floor(deps.clock.now() / SECOND_MS);
  return new SignJWT({
    workspace: drive.workspace,
    drive: drive.name,
    drive_uid: drive.uid,
    mode: access.mode,
    path: access.path,
    sub_type: caller.subjectType,
  })
    .setProtectedHeader({ alg: "EdDSA", kid: id, typ: "JWT" })
    .setIssuer(deps.settings.publicUrl)
    .setSubject(caller.subject)
    .setAudience(DRIVE_AUDIENCE)
    .setIssuedAt(now)
    .setExpirationTime(now + TOKEN_MS / SECOND_MS)
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
