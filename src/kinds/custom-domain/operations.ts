import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { certificateShape, revocationShape } from "../certificate/shapes.ts";
import { customDomain } from "./kind.ts";

const common = { tenancy: "workspace", role: "member", kind: "customdomain", response: customDomain.resource } as const;
const change = { ...common, scope: "customdomains:update" } as const;

export const customDomainVerify = defineOperation({
  ...change,
  id: "customDomainVerify",
  method: "POST",
  path: "/customdomains/{domainName}/verify",
  summary: "Look the records of a domain up in DNS, now",
});

export const customDomainShare = defineOperation({
  ...change,
  id: "customDomainShare",
  method: "POST",
  path: "/customdomains/{domainName}/share",
  summary: "Let another workspace of the account use a domain, or all of them with `account`",
  role: "admin",
  body: z.looseObject({ targetWorkspace: z.string().min(1).max(64) }),
});

export const customDomainUnshare = defineOperation({
  ...change,
  id: "customDomainUnshare",
  method: "DELETE",
  path: "/customdomains/{domainName}/share/{targetWorkspace}",
  summary: "Take a domain back from a workspace",
  role: "admin",
});

export const customDomainShares = defineOperation({
  ...common,
  id: "customDomainShares",
  method: "GET",
  path: "/customdomains/{domainName}/share",
  summary: "List the workspaces that may use a domain",
  scope: "customdomains:get",
  response: z.array(
    z.object({ workspace: z.string(), status: z.string(), workspaceDisplayName: z.string().optional() }),
  ),
});

export const applicationCustomDomainCreate = defineOperation({
  ...common,
  id: "applicationCustomDomainCreate",
  method: "POST",
  path: "/applications/{applicationName}/customdomains",
  summary: "Create a domain that leads to an application",
  scope: "customdomains:create",
  body: customDomain.body,
});

export const applicationCustomDomainList = defineOperation({
  ...common,
  id: "applicationCustomDomainList",
  method: "GET",
  path: "/applications/{applicationName}/customdomains",
  summary: "List the domains that lead to an application",
  scope: "customdomains:list",
  response: z.array(customDomain.resource),
});

const certificateList = certificateShape.array();

export const customDomainCertificates = defineOperation({
  ...common,
  id: "customDomainCertificates",
  method: "GET",
  path: "/customdomains/{domainName}/certificates",
  summary: "List the certificates of a domain, and why one is missing",
  scope: "customdomains:get",
  response: certificateList,
});

/** Bytes of a chain of certificates, and of a private key. */
const PEM_MAX = 64 * 1024;

export const customDomainCertificateUpload = defineOperation({
  ...change,
  id: "customDomainCertificateUpload",
  method: "PUT",
  path: "/customdomains/{domainName}/certificates",
  summary: "Serve a certificate of one's own at a domain",
  role: "admin",
  body: z.looseObject({
    certificate: z.string().max(PEM_MAX).describe("PEM: the certificate, then those of its authorities."),
    privateKey: z.string().max(PEM_MAX).describe("PEM, not encrypted; sealed, never shown."),
  }),
  response: certificateList,
});

export const customDomainCertificatesRemove = defineOperation({
  ...change,
  id: "customDomainCertificatesRemove",
  method: "DELETE",
  path: "/customdomains/{domainName}/certificates",
  summary: "Remove the uploaded certificate of a domain",
  role: "admin",
  response: certificateList,
});

export const customDomainCertificatesRevoke = defineOperation({
  ...change,
  id: "customDomainCertificatesRevoke",
  method: "POST",
  path: "/customdomains/{domainName}/certificates/revoke",
  summary: "Revoke certificates that an authority issued for a domain",
  role: "admin",
  body: revocationShape,
  bodyOptional: true,
  response: certificateList,
});

export const customDomainOperations = [
  customDomainVerify,
  customDomainShare,
  customDomainUnshare,
  customDomainShares,
  applicationCustomDomainCreate,
  applicationCustomDomainList,
  customDomainCertificates,
  customDomainCertificateUpload,
  customDomainCertificatesRemove,
  customDomainCertificatesRevoke,
];
