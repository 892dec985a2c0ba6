/**
 * Certificates that an authority issued for the platform's own names. They are for admins of the first account, which
 * the operator made; certificates of custom domains belong to their domains.
 */
import { defineOperation } from "../../contract/operation.ts";
import { certificateShape, revocationShape } from "./shapes.ts";

const common = {
  kind: "certificate",
  tenancy: "account",
  role: "admin",
  response: certificateShape.array(),
} as const;

export const certificateList = defineOperation({
  ...common,
  id: "certificateList",
  method: "GET",
  path: "/certificates",
  summary: "List the certificates of the platform's own names, and why one is missing",
  scope: "certificates:list",
  verb: "list",
});

export const certificateRevoke = defineOperation({
  ...common,
  id: "certificateRevoke",
  method: "POST",
  path: "/certificates/revoke",
  summary: "Revoke certificates that an authority issued for the platform's own names",
  scope: "certificates:update",
  body: revocationShape,
  bodyOptional: true,
});

export const certificateOperations = [certificateList, certificateRevoke];
