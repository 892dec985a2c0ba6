/** Who is calling, as far as credentials tell. */
import type { Role } from "./operation.ts";

export type SubjectType = "user" | "service_account" | "workload";

/**
 * What credentials hang on: an API key, a person's consent to a program (by the hash of its id), a service account.
 * A credential that hangs on one of them ends with it.
 */
export type Right = `key:${string}` | `grant:${string}` | `account:${string}`;

export interface Caller {
  subject: string;
  subjectType: SubjectType;
  /** For people: how others know them; for machines: the name they were given. */
  displayName: string;
  authMethod: "api_key" | "jwt";
  keyId: string | null;
  /** The right that this call uses; null for a person who signed in at the command line with all scopes. */
  right: Right | null;
  /** When that right ends: of a key with an end, a program, and all that hangs on one of them. Absent = never. */
  endsAt?: number;
  accounts: readonly { id: string; role: Role }[];
  /** A service account works only in its own workspace, with its own role. */
  bound: { workspace: string; role: Role } | null;
  /** Where a person's request goes that names no workspace, as their key says. */
  home: string | null;
  /** null = everything that the role allows. */
  scopes: ReadonlySet<string> | null;
}

export const isAccountAdmin = (caller: Caller, accountId: string): boolean =>
  caller.accounts.some((account) => account.id === accountId && account.role === "admin");

/** What a credential made by this caller hangs on: a right that ends makes nothing that outlives it. */
export const hangsOn = ({ right, endsAt }: Caller): Right | null => (endsAt === undefined ? null : right);
