/**
 * Checks a drive token for `/oauth/introspect`. The signature proves only that the platform issued the token; this
 * check also requires that the drive still exists and that the token's subject could get the same token again now.
 */
import type { JSONWebKeySet } from "jose";
import type { Makers } from "../../auth/rights/makers.ts";
import type { MadeBy } from "../../contract/preview-tokens.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { Platform } from "../port.ts";
import { callerAccess } from "./caller-access.ts";
import { covers, type DriveAccess } from "./permissions.ts";
import { DRIVE_AUDIENCE, DRIVE_SIGNING_PURPOSE } from "./tokens.ts";

export interface DriveTokenDeps extends Pick<Platform, "store" | "settings" | "clock">, Pick<Makers, "makerOf"> {}

/** Claims of a drive token, beside the standard JWT claims. */
export interface DriveClaims extends DriveAccess {
  workspace: string;
  drive: string;
  drive_uid: string;
  sub: string;
  sub_type: MadeBy["subjectType"];
  right?: MadeBy["right"];
  iat: number;
  exp: number;
  jti: string;
}

/** Tokens whose signature was checked and that are remembered until their end; a full memory is cleared. */
const KNOWN_MAX = 1000;

/** The check of tokens for one audience. It returns the claims of a valid token, and null for any other text. */
export function createDriveTokenCheck(deps: DriveTokenDeps, audience: string = DRIVE_AUDIENCE) {
  const known = new Map<string, DriveClaims>();

  /** The signature is checked once; the rights behind it each time. */
  async function claimsOf(token: string): Promise<DriveClaims | null> {
    const before = known.get(token);
    if (before && before.exp * SECOND_MS > deps.clock.now()) return before;
    const claims = await verified(token, audience, deps);
    if (!claims) return null;
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(token, claims);
    return claims;
  }

  return async (token: string): Promise<DriveClaims | null> => {
    const claims = await claimsOf(token);
    if (!claims) return null;
    const drive = await deps.store.resources.getByUid(claims.workspace, claims.drive_uid);
    if (drive?.kind !== "drive" || drive.deletedAt !== null) return null;
    const { workspace, sub: subject, sub_type: subjectType, right = null } = claims;
    const madeBy: MadeBy = { subject, subjectType, right };
    const maker = await deps.makerOf({ workspace, createdBy: "", state: { madeBy } });
    // `iat` counts whole seconds.
    if (maker === null || (claims.iat + 1) * SECOND_MS <= maker.sinceMs) return null;
    const access = await callerAccess({ subject, subjectType, role: maker.role }, drive, deps);
    return covers(access, claims) ? claims : null;
  };
}

async function verified(
  token: string,
  audience: string,
  { store, settings, clock }: DriveTokenDeps,
): Promise<DriveClaims | null> {
  const { createLocalJWKSet, jwtVerify } = await import("jose"); // lazy: few servers ever check a token
  const keys = (await store.signingKeys.publicKeys(DRIVE_SIGNING_PURPOSE)).map((text) => JSON.parse(text) as object);
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet({ keys } as JSONWebKeySet), {
      algorithms: ["EdDSA"],
      issuer: settings.publicUrl,
      audience,
      requiredClaims: ["sub", "iat", "exp", "jti"],
      currentDate: new Date(clock.now()),
    });
    return payload as unknown as DriveClaims;
  } catch {
    return null; // not a valid token of this platform
  }
}
