import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

export const driveAccessToken = defineOperation({
  id: "driveAccessToken",
  method: "POST",
  path: "/drives/{driveName}/access-token",
  summary: "Get a short-lived token that opens a drive",
  tenancy: "workspace",
  scope: "drives:get",
  role: "member",
  response: z.object({ access_token: z.string(), expires_in: z.int(), token_type: z.literal("Bearer") }),
  kind: "drive",
});

export const driveJwks = defineOperation({
  id: "driveJwks",
  method: "GET",
  path: "/drives/jwks.json",
  summary: "Read the public keys that drive tokens are checked with",
  tenancy: "public",
  scope: null,
  role: "member",
  response: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }),
  kind: "drive",
});

export const driveOperations = [driveAccessToken, driveJwks];
