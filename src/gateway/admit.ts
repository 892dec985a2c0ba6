/** Admission: which workload a route leads to, and whether this request may reach it. */

import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import type { WorkloadRoute } from "../http/route.ts";
import {
  bearerToken,
  type Credential,
  type CredentialNames,
  findCredential,
  findPreviewToken,
  withoutTokens,
} from "./credentials.ts";
import type { GatewayDeps, Principal, Target, Workload } from "./deps.ts";
import { challenge } from "./protected-resource.ts";

export interface Admitted {
  workload: Workload;
  principal: Principal | null;
  /** Raw path and query for the workload, without credentials of the platform. */
  path: string;
  dropAuthorization: boolean;
  /** The credential that admitted the request; null for none, and where a façade has found the caller. */
  token: string | null;
  /**
   * Cookie for a preview that was opened with a token in the query: the pages it loads next cannot repeat the token.
   */
  previewCookie: string | null;
}

export interface AdmitContext {
  deps: GatewayDeps;
  names: CredentialNames;
  cookies: { preview: string; revision: string };
}

/** The workload that a route leads to, before the caller is authenticated. */
export async function find(context: AdmitContext, down: Downstream, route: WorkloadRoute): Promise<Workload> {
  return (await context.deps.resolve(targetOf(route))) ?? refuseUnknown(context, down, route);
}

export async function admit(
  context: AdmitContext,
  down: Downstream,
  route: WorkloadRoute,
  workload: Workload,
  known: Principal | null = null,
): Promise<Admitted> {
  if (workload.preview !== null) return admitToPreview(context, down, route, workload);

  const credential = known === null ? findCredential(context.names, down, route.path) : null;
  const principal = await admitPrincipal(context, down, workload, credential, route, known);
  requireOpen(workload);
  return {
    workload,
    principal,
    path: credential?.from === "query" ? withoutTokens(route.path, true) : route.path,
    dropAuthorization:
      credential?.from === "authorization" ? principal !== null : await carriesOurs(context, down, credential),
    token: credential?.token ?? null,
    previewCookie: null,
  };
}

/**
 * Whether Authorization carries a platform key. Clients also send one where none is needed, or beside another header.
 */
async function carriesOurs({ deps }: AdmitContext, down: Downstream, known: Credential | null): Promise<boolean> {
  const token = bearerToken(down);
  if (token === null) return false;
  return token === known?.token || (await deps.authenticate(token)) !== null;
}

/** Returns null only for a public workload that was called without a platform credential. */
async function admitPrincipal(
  { deps }: AdmitContext,
  down: Downstream,
  workload: Workload,
  credential: Credential | null,
  route: WorkloadRoute,
  known: Principal | null = null,
): Promise<Principal | null> {
  const principal = credential === null ? known : await deps.authenticate(credential.token);
  if (workload.public) return principal;
  if (credential === null && principal === null)
    throw new GatewayError("AUTHENTICATION_REQUIRED", undefined, challenge(deps, down, route));
  if (principal === null)
    throw new GatewayError("AUTHENTICATION_FAILED", undefined, challenge(deps, down, route, ', error="invalid_token"'));
  if (!(await deps.authorize(principal, workload))) throw new GatewayError("FORBIDDEN");
  return principal;
}

async function admitToPreview(
  context: AdmitContext,
  down: Downstream,
  route: WorkloadRoute,
  workload: Workload,
): Promise<Admitted> {
  const { preview } = workload;
  if (preview === null) throw new GatewayError("ROUTE_NOT_FOUND");
  const found = preview.public ? null : findPreviewToken(context.names, down, route.path, context.cookies.preview);
  if (!preview.public) {
    if (found === null) throw new GatewayError("AUTHENTICATION_REQUIRED", "This preview is private: send its token.");
    if (!(await preview.checkToken(found.token))) {
      throw new GatewayError("AUTHENTICATION_FAILED", "The preview token is not valid, or no longer valid.");
    }
  }
  requireOpen(workload);
  const isPage = found?.from === "query" && (down.header("accept")?.includes("text/html") ?? false);
  return {
    workload,
    principal: { id: preview.id, type: "preview", method: preview.public ? "public" : "preview_token" },
    path: withoutTokens(route.path, false),
    dropAuthorization: await carriesOurs(context, down, null),
    token: found?.token ?? null,
    previewCookie: isPage && COOKIE_SAFE.test(found.token) ? found.token : null,
  };
}

export function requireOpen({ enabled, refusal }: Workload): void {
  if (!enabled) throw new GatewayError("WORKLOAD_DISABLED");
  if (refusal !== undefined) throw new GatewayError("POLICY_VIOLATION", `It must not run here: ${refusal}.`);
}

const COOKIE_SAFE = /^[\w.~+/=-]{1,512}$/;

/** Only callers who may see the workspace learn that a name in it does not exist. */
async function refuseUnknown(context: AdmitContext, down: Downstream, route: WorkloadRoute): Promise<never> {
  if (route.to !== "workload") throw new GatewayError("ROUTE_NOT_FOUND");
  const { workspace, kind } = route;
  const credential = findCredential(context.names, down, route.path);
  await admitPrincipal(context, down, { ...PRIVATE, workspace, kind }, credential, route).catch((error: unknown) =>
    explainForbidden(error, workspace, context.deps),
  );
  throw new GatewayError("WORKLOAD_NOT_FOUND", `There is no ${kind} "${route.name}" in workspace "${workspace}".`);
}

/** Turns "forbidden" into "not found" for a workspace that does not exist, so that a caller sees a misspelt name. */
export async function explainForbidden(
  error: unknown,
  workspace: string,
  { hasWorkspace }: Pick<GatewayDeps, "hasWorkspace">,
): Promise<never> {
  const isForbidden = error instanceof GatewayError && error.code === "FORBIDDEN";
  if (isForbidden && hasWorkspace && !(await hasWorkspace(workspace)))
    throw new GatewayError("WORKSPACE_NOT_FOUND", `There is no workspace "${workspace}".`);
  throw error;
}

const PRIVATE: Omit<Workload, "workspace" | "kind"> = {
  uid: "",
  name: "",
  public: false,
  enabled: false,
  revisions: null,
  elsewhere: null,
  door: "api",
  triggers: [],
  preview: null,
};

export function targetOf(route: WorkloadRoute): Target {
  switch (route.to) {
    case "workload":
      return { by: "name", kind: route.kind, workspace: route.workspace, name: route.name };
    case "label":
      return { by: "label", label: route.label };
    case "preview":
      return { by: "preview", workspace: route.workspace, id: route.id };
    case "domain":
      return { by: "domain", host: route.host };
    case "internal":
      return { by: "internal", hash: route.hash };
    case "trigger":
      return { by: "trigger", workspace: route.workspace, path: route.path };
  }
}
