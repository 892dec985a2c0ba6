/**
 * An operation is the atom of the platform: one endpoint with everything that is derived from it. Routes, validation,
 * scopes, openapi.json, the typed client, CLI verbs and the authorisation walk all read this one declaration.
 */
import type { z } from "zod";

export type Method = "GET" | "POST" | "PUT" | "DELETE";
export type Verb = "list" | "get" | "create" | "update" | "delete";

/**
 * Whose data an operation touches.
 * - `workspace`: a workspace is chosen by header, query or key, and the caller must belong to it.
 * - `account`: the caller's own account, or the one named in the path, which must be the caller's.
 * - `caller`: anyone who is known; the operation looks only at what is theirs.
 * - `public`: no credentials needed.
 */
export type Tenancy = "workspace" | "account" | "caller" | "public";

export type Role = "member" | "admin";

/**
 * A use of an operation that needs the admin role (of the account for `account` operations) while other uses do not.
 */
export interface AdminUse {
  /** The query text, for messages: `show_secrets=true`. */
  query: string;
  applies(query: Readonly<Record<string, string>>): boolean;
}

export interface OperationSpec<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Response extends z.ZodType = z.ZodType,
> {
  id: string;
  method: Method;
  /** Path below the `/v0` prefix, with `{param}` segments. */
  path: string;
  summary: string;
  tenancy: Tenancy;
  /** The OAuth scope that a token needs; null only for operations that are open to every authenticated caller. */
  scope: string | null;
  /** The workspace role that is needed (account role for `account` operations). */
  role: Role;
  adminUses?: readonly AdminUse[];
  /** Path parameter with the workspace, for operations that take it from the path instead of header, query or key. */
  workspaceParam?: string;
  query?: Query;
  body?: Body;
  /** The body may be absent. */
  bodyOptional?: boolean;
  bodyBytesMax?: number;
  /** Media type of a body that the handler reads as a stream, without parsing. */
  stream?: string;
  /** Media type of an answer of bytes, which the handler gives as a stream; `response` is not used. */
  bytes?: string;
  /** The answer is a stream of server-sent events; `response` is the data of an event. */
  events?: true;
  response: Response;
  status?: 200 | 202 | 204;
  /** The operation may also answer 202: another person has to agree first. */
  mayWait?: true;
  /** Returns `{data, meta}` from 2026-04-28 on and a bare array before. */
  paged?: boolean;
  kind?: string;
  verb?: Verb;
}

export interface Operation<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Response extends z.ZodType = z.ZodType,
> extends OperationSpec<Query, Body, Response> {
  params: readonly string[];
  mutates: boolean;
}

export function defineOperation<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Response extends z.ZodType = z.ZodType,
>(spec: OperationSpec<Query, Body, Response>): Operation<Query, Body, Response> {
  const params = [...spec.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
  return Object.freeze({ ...spec, params, mutates: spec.method !== "GET" });
}
