/**
 * A kind is a factory of operations: data that says which verbs exist, what the fields are and which rules hold.
 * Declarations are browser-safe; server behaviour beyond the rules is in the kind's behaviour.
 */
import { z } from "zod";
import { dryRun } from "./dry-run.ts";
import * as fields from "./fields.ts";
import { filterParameters, LIMIT_DEFAULT, LIMIT_MAX, type ListLimits, listParameters, pageMeta } from "./list-query.ts";
import type { WithoutEffect } from "./members/without-effect.ts";
import { type AdminUse, defineOperation, type Operation, type Role, type Verb } from "./operation.ts";
import type { Reference } from "./references.ts";

type Json = Record<string, unknown>;

export interface KindSpec<Spec extends z.ZodObject = z.ZodObject, State extends Json = Json> {
  /** The noun in operation ids, CLI and folder names. */
  name: string;
  plural: string;
  summary: string;
  /** The collection's path; below the parent's item path for a nested kind. */
  path?: string;
  /** The item's path parameter. */
  param: string;
  /** The kind that contains this one; absent = the workspace. */
  within?: Kind;
  verbs: readonly Verb[];
  /** Metadata members besides the common ones. */
  metadata?: z.ZodRawShape;
  /** Metadata members that the platform sets. */
  readOnlyMetadata?: z.ZodRawShape;
  /** `metadata.name` is generated when absent. */
  nameOptional?: boolean;
  nameRule?: z.ZodType<string>;
  /** Several resources may have the same name. */
  namesShared?: boolean;
  /** On the wire the spec members are at the top level, and the name is this member. */
  flat?: { name: string };
  /** Most resources below one parent. */
  countMax?: number;
  spec: Spec;
  specOptional?: boolean;
  /** Type of the facts that the platform records; they are not validated, because only the platform writes them. */
  recorded?: z.ZodType<State>;
  /** Shape of the `state` member of responses. */
  state?: z.ZodType;
  /** Read-only members besides metadata, spec, state, status and events. */
  extra?: z.ZodRawShape;
  /** Spec members that the platform sets; values sent by clients are dropped. */
  readOnlySpec?: readonly string[];
  /** Paths that cannot change after creation. */
  immutable?: readonly string[];
  /** See secret-fields.ts. */
  secrets?: readonly string[];
  /** Members that are stored and have no effect; see members/without-effect.ts. */
  withoutEffect?: readonly WithoutEffect[];
  /** Name of a resource that every workspace has: created when first read, and never deleted. */
  builtIn?: string;
  /**
   * Who reads secrets in clear: nobody (default), an admin with `show_secrets`, or everyone who may read the resource.
   */
  secretsShown?: "on_request" | "always";
  /** Secrets that are never shown again, to anybody. */
  secretsWriteOnly?: readonly string[];
  /** Fields that name other resources; see references.ts. */
  references?: readonly Reference[];
  /** Each change of the spec is a revision; the last five are kept. */
  revisions?: boolean;
  /** Schema of an entry in the list of revisions. Default: the common one. */
  revision?: z.ZodType;
  /** From when on the resource counts as gone although its record is not removed yet; null = never. */
  endOf?(resource: { spec: Record<string, unknown>; createdAt: number }): number | null;
  /** Lists are `{data, meta}` from 2026-04-28 on; short lists stay bare arrays. */
  paged?: boolean;
  limits?: ListLimits;
  byExternalId?: boolean;
  /** Status of a new record; absent for kinds without a status. */
  initialStatus?: fields.Status;
  /** The part of the scope before the colon. Default: the plural. */
  scopeWord?: string;
  scopes?: Partial<Record<Verb, string>>;
  roles?: Partial<Record<Verb, Role>>;
  /** Response of delete. Default: the resource. */
  deleteResponse?: z.ZodType;
  /** Additional query parameters by verb. */
  query?: Partial<Record<Verb, z.ZodRawShape>>;
  meters?: readonly string[];
  /** Resources of this kind are on one node, which alone acts on them. A nested resource is on its parent's node. */
  placed?: {
    /** The spec member that shows the node. */
    shownAs?: string;
  };
}

/** A resource as answers show it. */
export type Shown<Spec extends Json = Json> = Json & {
  metadata: Json & { name: string; workspace: string; createdAt: string; updatedAt: string };
  spec: Partial<Spec>;
  status?: string;
  events?: fields.Event[];
};

/** The same for a flat kind. */
export type ShownFlat<Spec extends Json = Json> = Json & { createdAt: string } & Partial<Spec>;

type Answers<Answer> = {
  list: Answer[] | { data: Answer[]; meta: z.output<typeof pageMeta> };
  get: Answer;
  create: Answer;
  update: Answer;
  /** The resource, or what the kind answers instead. */
  delete: unknown;
};

type VerbOperation<V extends Verb, Answer> = Operation<z.ZodObject, z.ZodType, z.ZodType<Answers<Answer>[V]>>;

/** `Answer` is a resource as answers show it. */
export interface Kind<Spec extends Json = Json, State extends Json = Json, Answer extends Json = Json>
  extends Omit<KindSpec, "limits" | "secrets" | "immutable" | "readOnlySpec" | "references" | "recorded"> {
  /** Never set: carries the types of the spec and of the recorded state. */
  readonly types?: { spec: Spec; state: State };
  collectionPath: string;
  itemPath: string;
  limits: ListLimits;
  secrets: readonly string[];
  references: readonly Reference[];
  immutable: readonly string[];
  readOnlySpec: readonly string[];
  body: z.ZodType;
  /** The body of an update. */
  replacement: z.ZodType;
  resource: z.ZodType<Answer>;
  operations: Operation[];
  operation: { [V in Verb]?: VerbOperation<V, Answer> };
}

export type SpecOf<K extends Kind> = NonNullable<K["types"]>["spec"];
export type StateOf<K extends Kind> = NonNullable<K["types"]>["state"];

export function defineKind<Spec extends z.ZodObject, State extends Json = Json>(
  spec: KindSpec<Spec, State> & { flat: { name: string } },
): Kind<z.output<Spec>, State, ShownFlat<z.output<Spec>>>;
export function defineKind<Spec extends z.ZodObject, State extends Json = Json>(
  spec: KindSpec<Spec, State>,
): Kind<z.output<Spec>, State, Shown<z.output<Spec>>>;
export function defineKind(spec: KindSpec): Kind {
  const collectionPath = (spec.within?.itemPath ?? "") + (spec.path ?? `/${spec.plural}`);
  const kind = {
    ...spec,
    collectionPath,
    itemPath: `${collectionPath}/{${spec.param}}`,
    limits: spec.limits ?? { limitDefault: LIMIT_DEFAULT, limitMax: LIMIT_MAX },
    secrets: spec.secrets ?? [],
    references: spec.references ?? [],
    immutable: spec.immutable ?? [],
    readOnlySpec: spec.readOnlySpec ?? [],
    body: bodySchema(spec),
    // The path names the resource, so the body need not.
    replacement: bodySchema({ ...spec, nameOptional: true }),
    resource: resourceSchema(spec),
  };
  const operation = Object.fromEntries(spec.verbs.map((verb) => [verb, defineVerb(kind, verb)]));
  const externalGet = spec.byExternalId ? [defineByExternalId(kind)] : [];
  const revisionList = spec.revisions ? [defineRevisionList(kind)] : [];
  return { ...kind, operation, operations: [...Object.values(operation), ...externalGet, ...revisionList] };
}

const commonRevision = z.looseObject({
  id: z.string(),
  active: z.boolean().optional(),
  canary: z.boolean().optional(),
  previousActive: z.boolean().optional().describe("It answered before the one that does now."),
  trafficPercent: z.int().optional(),
  createdAt: z.string().optional(),
  createdBy: z.string().optional(),
  status: z.string().optional(),
  spec: z.record(z.string(), z.unknown()).optional().describe("Its configuration, without secrets."),
});

const a = ({ name }: KindSpec): string => `${/^[aeio]/.test(name) ? "an" : "a"} ${name}`;

const METHODS = { list: "GET", get: "GET", create: "POST", update: "PUT", delete: "DELETE" } as const;
const SUMMARIES: Record<Verb, (kind: KindSpec) => string> = {
  list: (kind) => `List ${kind.plural}`,
  get: (kind) => `Read one ${kind.name}`,
  create: (kind) => `Create ${a(kind)}`,
  update: (kind) => `Replace the configuration of ${a(kind)}`,
  delete: (kind) => `Delete ${a(kind)}`,
};

/** Any value except a clear false counts as a request for secrets. */
export const SHOW_SECRETS: AdminUse = {
  query: "show_secrets=true",
  applies: ({ show_secrets: asked }) => !!asked && z.stringbool().safeParse(asked).data !== false,
};

type KindBase = Omit<Kind, "operations" | "operation">;

function defineVerb(kind: KindBase, verb: Verb): Operation {
  const item = verb !== "list" && verb !== "create";
  const page = kind.paged ? z.object({ data: z.array(kind.resource), meta: pageMeta }) : z.array(kind.resource);
  const query: z.ZodRawShape = {
    ...(verb === "list" ? (kind.paged ? listParameters : filterParameters).shape : {}),
    ...(verb === "get" && kind.secretsShown === "on_request" ? { show_secrets: z.stringbool().optional() } : {}),
    ...(verb === "list" || verb === "get" ? {} : dryRun),
    ...kind.query?.[verb],
  };
  return defineOperation({
    id: `${kind.name}${verb[0]?.toUpperCase()}${verb.slice(1)}`,
    method: METHODS[verb],
    path: item ? kind.itemPath : kind.collectionPath,
    summary: SUMMARIES[verb](kind),
    tenancy: "workspace",
    scope: kind.scopes?.[verb] ?? `${kind.scopeWord ?? kind.plural}:${verb}`,
    role: kind.roles?.[verb] ?? "member",
    query: z.object(query),
    ...("show_secrets" in query ? { adminUses: [SHOW_SECRETS] } : {}),
    ...(verb === "create" ? { body: kind.body } : {}),
    ...(verb === "update" ? { body: kind.replacement } : {}),
    response: verb === "list" ? page : verb === "delete" ? (kind.deleteResponse ?? kind.resource) : kind.resource,
    paged: verb === "list" && (kind.paged ?? false),
    kind: kind.name,
    verb,
  });
}

const defineByExternalId = (kind: KindBase): Operation =>
  defineOperation({
    id: `${kind.name}GetByExternalId`,
    method: "GET",
    path: `${kind.collectionPath}/by-external-id/{externalId}`,
    summary: `Read the newest ${kind.name} with this external id`,
    tenancy: "workspace",
    scope: kind.scopes?.get ?? `${kind.scopeWord ?? kind.plural}:get`,
    role: "member",
    response: kind.resource,
    kind: kind.name,
  });

const defineRevisionList = (kind: KindBase): Operation =>
  defineOperation({
    id: `${kind.name}RevisionList`,
    method: "GET",
    path: `${kind.itemPath}/revisions`,
    summary: `List the last revisions of ${a(kind)}`,
    tenancy: "workspace",
    scope: kind.scopes?.list ?? `${kind.scopeWord ?? kind.plural}:list`,
    role: "member",
    response: z.array(kind.revision ?? commonRevision),
    kind: kind.name,
  });

/** The message about an invalid name, instead of one about both alternatives. */
const firstOf: z.core.$ZodErrorMap = (issue) =>
  issue.code === "invalid_union" ? issue.errors[0]?.[0]?.message : undefined;

/** Clients write back what they read, so read-only members in a body are ignored, not refused. */
function bodySchema(kind: KindSpec): z.ZodType {
  // Some clients send an empty name where others omit it.
  const given = kind.nameRule ?? fields.name;
  const rule = kind.nameOptional ? z.union([given, z.literal("")], { error: firstOf }).optional() : given;
  if (kind.flat) return z.looseObject({ [kind.flat.name]: rule, ...kind.spec.shape });
  const metadata = z.looseObject({
    name: rule,
    displayName: fields.displayName.optional(),
    labels: fields.labels.optional(),
    externalId: fields.externalId.optional(),
    ...kind.metadata,
  });
  return z.looseObject({
    metadata: kind.nameOptional ? (metadata as z.ZodObject).prefault({}) : metadata,
    spec: kind.specOptional ? kind.spec.prefault({}) : kind.spec,
  });
}

function resourceSchema(kind: KindSpec): z.ZodType<Json> {
  if (kind.flat)
    return z.looseObject({ [kind.flat.name]: z.string(), createdAt: z.string(), ...kind.spec.partial().shape });
  return z.looseObject({
    metadata: z.looseObject({
      name: z.string(),
      displayName: z.string().optional(),
      labels: z.record(z.string(), z.string()).optional(),
      externalId: z.string().optional(),
      uid: z.string().optional(),
      workspace: z.string(),
      plan: z.string().optional(),
      url: z.string().optional(),
      createdAt: z.string(),
      updatedAt: z.string(),
      createdBy: z.string().optional(),
      updatedBy: z.string().optional(),
      // The name of the node that has the resource, where there are several.
      ...(kind.placed ? { node: z.string().optional() } : {}),
      ...kind.metadata,
      ...kind.readOnlyMetadata,
    }),
    spec: kind.spec.partial(),
    ...(kind.state ? { state: kind.state.optional() } : {}),
    ...(kind.initialStatus ? { status: z.string(), events: z.array(fields.event).optional() } : {}),
    ...kind.extra,
  });
}
