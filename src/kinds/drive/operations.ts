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

export const driveS3Credentials = defineOperation({
  id: "driveS3Credentials",
  method: "POST",
  path: "/drives/{driveName}/s3-credentials",
  summary: "Get temporary credentials that open a drive as an S3 bucket",
  tenancy: "workspace",
  scope: "drives:get",
  role: "member",
  body: z
    .object({
      durationSeconds: z
        .int()
        .min(60)
        .max(43_200)
        .optional()
        .describe("How long the credentials are valid, in seconds. Default 3600; never longer than the caller's own."),
    })
    .optional(),
  bodyOptional: true,
  response: z.object({
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
    sessionToken: z.string(),
    expiration: z.string(),
    endpoint: z.string(),
    bucket: z.string(),
    region: z.string(),
  }),
  kind: "drive",
});

export const driveOperations = [driveAccessToken, driveJwks, driveS3Credentials];
