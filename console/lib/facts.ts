/** What the console knows about kinds and operations before it asks the server; `generated/` has the values. */

export type Verb = "list" | "get" | "create" | "update" | "delete";
export type Role = "member" | "admin";

export interface KindFacts {
  name: string;
  plural: string;
  summary: string;
  /** The collection's path below `/v0`, with `{param}` segments for its parents. */
  path: string;
  /** The item's path parameter. */
  param: string;
  /** Name of the kind that contains this one. */
  within: string | null;
  verbs: readonly Verb[];
  paged: boolean;
  revisions: boolean;
  /** For kinds without metadata: the member with the name. */
  flat: string | null;
  nameOptional: boolean;
  /** The one that every workspace has and nobody deletes. */
  builtIn: string | null;
  /** The scope and role that each verb needs. */
  rights: Readonly<Partial<Record<Verb, readonly [scope: string | null, role: Role]>>>;
}

export interface OperationFacts {
  id: string;
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  summary: string;
  scope: string | null;
  role: Role;
  kind: string | null;
}

/** Why nobody deletes the resource of this name, whatever their rights; null where somebody may. */
export const stays = ({ builtIn }: Pick<KindFacts, "builtIn">, name: string): string | null =>
  name === builtIn ? `'${name}' belongs to the workspace and stays with it.` : null;
