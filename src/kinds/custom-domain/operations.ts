import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
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

export const customDomainOperations = [
  customDomainVerify,
  customDomainShare,
  customDomainUnshare,
  customDomainShares,
  applicationCustomDomainCreate,
  applicationCustomDomainList,
];
