/** How certificates are shown and what a revocation is asked with, for the platform's own names and custom domains. */
import { z } from "zod";
import { REVOCATION_REASONS, type RevocationReason } from "../../acme/revocation-reason.ts";

export const certificateShape = z.object({
  name: z.string().describe("Host name, or `*.` and a domain."),
  source: z.enum(["acme", "upload"]),
  issuer: z.string().optional().describe("Absent while there is no certificate."),
  notBefore: z.string().optional(),
  notAfter: z.string().optional(),
  renewsAt: z.string().optional().describe("When the platform asks for the next one; absent for an uploaded one."),
  revokedAt: z.string().optional().describe("When the authority revoked it; absent for a certificate that is good."),
  failure: z.string().optional().describe("Why the last attempt to get a certificate failed."),
});

export const revocationShape = z.looseObject({
  name: z.string().max(255).optional().describe("The certificate of this name only; all of them when absent."),
  reason: z
    .enum(Object.keys(REVOCATION_REASONS) as [RevocationReason, ...RevocationReason[]])
    .optional()
    .describe("What the authority is told; `unspecified` when absent."),
  reissue: z
    .boolean()
    .optional()
    .describe(
      "`true` (default): the platform asks for a new certificate within a minute and serves the revoked one until then. `false`: the revoked certificate is no longer served, and the platform asks for no other.",
    ),
});
