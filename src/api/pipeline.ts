/**
 * The straight path of a management request:
 * version → authenticate → authorize → parse → handler (once, if it has an idempotency key) → lower to the asked version;
 * what was meant to change something, or to show a secret, is in the audit log before it is answered.
 */

import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Authenticator, Credential, Membership } from "../auth/authenticator.ts";
import { authorizeAccount, authorizeRole, authorizeScope, authorizeUse } from "../auth/authorize.ts";
import { type Caller, isAccountAdmin } from "../contract/caller.ts";
import { isDryRun, refuseVainDryRun } from "../contract/dry-run.ts";
import { NodeUnavailable, notFound, PlatformError } from "../contract/errors.ts";
import type { EventStream } from "../contract/event-stream.ts";
import { SHOW_SECRETS } from "../contract/kind.ts";
import { unknownMembers, unknownParameters } from "../contract/members/unknown-members.ts";
import type { Operation } from "../contract/operation.ts";
import { ignoredParameters, liftQuery, lower, resolveVersion } from "../contract/versions/index.ts";
import type { Version } from "../contract/versions/version.ts";
import { isStrict, warningHeader } from "../contract/warnings.ts";
import type { UnreadAnswers } from "../http/unread-answers.ts";
import { isNewWork, refuseOnFullDisk } from "../kinds/new-work.ts";
import { type Call, type Implementation, namedWorkspace, type Platform } from "../kinds/port.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { uuidv7 } from "../lib/ids.ts";
import { type Soon, soon } from "../lib/soon.ts";
import type { Transaction } from "../store/database/database.ts";
import { auditEntry } from "./audit-call.ts";
import type { OpenedStream } from "./event-streams.ts";
import { answerOnce } from "./idempotent.ts";
import { checkParams, parseBody, parseQuery, singleValues } from "./validate.ts";

export interface ApiRequest {
  headers: IncomingHttpHeaders;
  params: Record<string, string>;
  query: unknown;
  body: unknown;
  /** The unread body of operations that take a stream. */
  stream: Readable | null;
  requestId: string;
  sourceAddress: string;
  /** The credential parsed from these headers, cached while the connection repeats them. */
  notes: { credential?: Credential };
}

export interface ApiAnswer {
  status: number;
  /** JSON text, or null for an empty body. */
  body: string | null;
  headers: Record<string, string>;
  caller: Caller | null;
  /** The answer goes on as a stream of events; the body is null. */
  events?: OpenedStream;
  /** The body of an operation that answers with bytes. */
  bytes?: Readable;
}

export interface PipelineDeps {
  deps: Platform;
  authenticator: Authenticator;
  unread: UnreadAnswers;
  /** Resolves when every process that serves requests has heard of the changes so far. */
  settled?: () => Promise<void>;
}

/** Who has to read an answer before getting many more. */
export const readerOf = ({ caller }: Pick<ApiAnswer, "caller">): string | null => caller?.subject ?? null;

/** Refuses a caller who has not read the earlier answers. */
export function requireRoom(unread: UnreadAnswers, reader: string | null): void {
  if (reader === null || unread.hasRoom(reader)) return;
  const message = "You have not read the answers to your earlier requests. Read them, then ask again.";
  throw new PlatformError("too_many_requests", message, { headers: { "retry-after": "1" } });
}

const NOBODY: Caller = {
  subject: "",
  subjectType: "user",
  displayName: "anonymous",
  authMethod: "api_key",
  keyId: null,
  right: null,
  accounts: [],
  bound: null,
  home: null,
  scopes: new Set(),
};

export async function answer(
  implementation: Implementation,
  request: ApiRequest,
  { deps, authenticator, unread, settled }: PipelineDeps,
): Promise<ApiAnswer> {
  const { operation } = implementation;
  const { headers } = request;
  const version = resolveVersion(
    headerOf(headers, `${deps.settings.brand}-version`) ?? headerOf(headers, "service-version"),
  );
  const isPublic = operation.tenancy === "public";
  let caller = NOBODY;
  if (!isPublic) {
    request.notes.credential ??= authenticator.bearerOf(headers);
    const known = authenticator.authenticate(request.notes.credential);
    caller = known instanceof Promise ? await known : known;
    requireRoom(unread, caller.subject);
  }
  let membership: Membership | null = null;
  // Reads are not audited, except reads of secrets.
  const isSecret = SHOW_SECRETS.applies(request.query as Record<string, string>);
  const isAudited = (operation.mutates || isSecret) && !isPublic;
  const isTrial = isDryRun(operation, request.query);
  const audited = () => ({ ...request, operation, isSecret, caller, workspace: membership?.workspace ?? null });
  let isTold = false;
  const audit = (tx: Transaction, status: number): void => {
    isTold = isAudited && !isTrial && deps.store.audit.enlist(tx, auditEntry(audited(), { status }));
  };
  const settle = async (): Promise<ApiAnswer> => {
    checkParams(request.params);
    const query = singleValues(request.query);
    if (!isPublic) {
      const admitted = admit(operation, caller, request, query, authenticator, deps);
      membership = admitted instanceof Promise ? await admitted : admitted;
    }
    // Checked once the workspace is known, so that a refusal is in the workspace's audit log.
    if (membership) authorizeRole(operation, membership.role);
    if (membership) authorizeUse(operation, query, membership.role === "admin");
    refuseVainDryRun(operation, request.query);
    const known = { caller, membership, version, query, audit };
    const done = await (implementation.explain ? explaining : perform)(implementation, request, known, deps);
    const { stream, ...rest } = done;
    if (!stream) return rest;
    const stillAllowed = () => requireSame(operation, known, request, { deps, authenticator });
    return { ...rest, events: { stream, reader: caller.subject, stillAllowed } };
  };
  if (!isAudited) return settle();
  let result: ApiAnswer;
  try {
    result = await settle();
  } catch (error) {
    const entry = auditEntry(audited(), { error });
    // A dry run changes nothing and is not audited, but a denied one is.
    if (!isTrial || entry.outcome === "denied") await deps.store.audit.record(entry);
    throw error;
  }
  try {
    if (!isTold && !isTrial) await deps.store.audit.record(auditEntry(audited(), result));
  } catch (error) {
    result.bytes?.destroy();
    throw error;
  }
  if (operation.mutates) await settled?.();
  return result;
}

/** Throws unless the credentials of an earlier request still give the caller that they gave then, with the same rights. */
async function requireSame(
  operation: Operation,
  { caller, membership, query }: Pick<Known, "caller" | "membership" | "query">,
  request: ApiRequest,
  { deps, authenticator }: Pick<PipelineDeps, "deps" | "authenticator">,
): Promise<void> {
  const now = await authenticator.authenticate(request.notes.credential ?? authenticator.bearerOf(request.headers));
  const role = (await admit(operation, now, request, query, authenticator, deps))?.role;
  const isSame = role === membership?.role && canonicalJson(scopesOf(now)) === canonicalJson(scopesOf(caller));
  if (isSame) return;
  throw new PlatformError("forbidden", "The rights of these credentials have changed. Connect again.");
}

const scopesOf = ({ scopes }: Caller): string[] | null => scopes && [...scopes].sort();

/**
 * The other live node that must serve this request; null when this server serves it. A request that will be refused is
 * refused here, so a caller without access learns nothing about nodes.
 */
export async function nodeFor(
  { operation, node }: Implementation,
  request: ApiRequest,
  { deps, authenticator }: PipelineDeps,
): Promise<string | null> {
  if (!node) return null;
  try {
    const caller = await authenticator.authenticate(authenticator.bearerOf(request.headers));
    const query = singleValues(request.query);
    const membership = await admit(operation, caller, request, query, authenticator, deps);
    const owner = membership && (await node({ workspace: membership.workspace.name, params: request.params }, deps));
    return owner !== null && !deps.nodes.owns(owner) && deps.nodes.isLive(owner) ? owner : null;
  } catch {
    return null;
  }
}

/** Adds the members that clients of this operation expect to an error. */
async function explaining(
  implementation: Implementation,
  request: ApiRequest,
  known: Known,
  deps: Platform,
): Promise<Performed> {
  try {
    return await perform(implementation, request, known, deps);
  } catch (error) {
    if (!implementation.explain || !(error instanceof PlatformError)) throw error;
    const { operation } = implementation;
    const workspace = known.membership?.workspace.name ?? null;
    const failed = { operation, params: request.params, body: request.body, workspace, nowMs: deps.clock.now() };
    throw error.with(implementation.explain(error, failed));
  }
}

type Performed = ApiAnswer & { stream?: EventStream };

interface Known {
  caller: Caller;
  membership: Membership | null;
  version: Version;
  query: Record<string, string>;
  audit(tx: Transaction, status: number): void;
}

async function perform(
  { operation, handle, subject, node }: Implementation,
  request: ApiRequest,
  { caller, membership, version, query, audit }: Known,
  deps: Platform,
): Promise<Performed> {
  if (isNewWork(operation)) refuseOnFullDisk(deps.here);
  const { headers } = request;
  const answered: Record<string, string> = {};
  const warnings: string[] = [];
  let uid: string | null = null;
  let status: number = operation.status ?? 200;
  const call: Call = {
    operation,
    params: request.params,
    query: operation.query ? parseQuery(operation.query, liftQuery(version, operation, query)) : {},
    body: undefined,
    text: null,
    stream: request.stream,
    caller,
    workspace: membership?.workspace ?? null,
    role: membership?.role ?? null,
    version,
    headers,
    requestId: request.requestId,
    uid: () => {
      uid ??= uuidv7(deps.clock.now());
      return uid;
    },
    setHeader: (name, value) => {
      answered[name] = value;
    },
    warn: (text) => {
      warnings.push(text);
    },
    setStatus: (chosen) => {
      status = chosen;
    },
    audit: (tx) => audit(tx, status),
  };
  if (subject) await subject(call, deps);
  const owner =
    node && membership ? await node({ workspace: membership.workspace.name, params: call.params }, deps) : null;
  if (owner !== null && !deps.nodes.owns(owner)) throw new NodeUnavailable(deps.nodes.nameOf(owner));
  if (operation.body && !(operation.bodyOptional && request.body === undefined))
    call.body = parseBody(operation.body, request.body);
  const run = async (claimedUid: string | null): Promise<Pick<ApiAnswer, "status" | "body">> => {
    uid = claimedUid;
    const shown = await handle(call, deps);
    if (status === 204 || status === 304) return { status, body: null };
    const lowered = lower(version, operation, shown);
    const text = lowered === shown ? call.text : null;
    return { status, body: text ?? JSON.stringify(lowered ?? null) };
  };
  warnings.push(
    ...ignoredParameters(version, operation, query),
    ...unknownParameters(operation, query),
    ...unknownMembers(operation, request.body),
  );
  if (warnings.length > 0 && isStrict(headerOf(headers, "prefer")))
    throw new PlatformError("unknown_member", warnings.join(" "));
  if (operation.events)
    return { status, body: null, headers: answered, caller, stream: (await handle(call, deps)) as EventStream };
  if (operation.bytes)
    return { status, body: null, headers: answered, caller, bytes: (await handle(call, deps)) as Readable };
  const key =
    operation.method === "POST" && !isDryRun(operation, query) ? headerOf(headers, "idempotency-key") : undefined;
  const result = key === undefined ? await run(null) : await answerOnce(key, call, run, deps);
  if (warnings.length > 0) answered.warning = warningHeader(warnings);
  return { ...result, headers: answered, caller: operation.tenancy === "public" ? null : caller };
}

/** Checks scope and tenant; returns the workspace and the caller's role for operations in a workspace. */
function admit(
  operation: Operation,
  caller: Caller,
  request: ApiRequest,
  query: Record<string, string>,
  authenticator: Authenticator,
  deps: Platform,
): Soon<Membership | null> {
  authorizeScope(operation, caller);
  if (operation.tenancy === "account") {
    const { accountId } = request.params;
    if (accountId !== undefined) {
      authorizeAccount(operation, caller, accountId);
      authorizeUse(operation, query, isAccountAdmin(caller, accountId));
      return null;
    }
    // What belongs to the platform and to no tenant is its first account's, which the operator made.
    return deps.store.people.listAccountsAcrossUsers().then(([first]) => {
      authorizeAccount(operation, caller, first?.id ?? "");
      return null;
    });
  }
  if (operation.tenancy !== "workspace") return null;
  const named = operation.workspaceParam
    ? request.params[operation.workspaceParam]
    : (namedWorkspace({ headers: request.headers, query }, deps) ?? undefined);
  return soon(named ?? authenticator.workspaceOf(caller), (name) => {
    if (name) return soon(authenticator.membershipIn(caller, name), (found) => found ?? refuse(operation, name));
    throw new PlatformError(
      "workspace_required",
      "Which workspace? Send its name in the X-Service-Workspace header or the workspace query parameter.",
    );
  });
}

function refuse({ workspaceParam }: Operation, workspace: string): never {
  const shown = workspace.slice(0, 64);
  if (workspaceParam) throw notFound(`Workspace '${shown}'`);
  throw new PlatformError("forbidden", `These credentials give no access to the workspace '${shown}'.`);
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}
