/** The caller of a request, as far as its credentials tell. */
import type { Role } from "./operation.ts";

export type SubjectType = "user" | "service_account" | "workload";

/**
 * A right that credentials can depend on: an API key, a person's consent to a program (by the hash of its id), a
 * service account. A credential ends with the right that it depends on.
 */
export type Right = `key:${string}` | `grant:${string}` | `account:${string}`;

export interface Caller {
  subject: string;
  subjectType: SubjectType;
  /** For people, their name as others see it; for machines, the name they were given. */
  displayName: string;
  authMethod: "api_key" | "jwt";
  keyId: string | null;
  /** The right that this call uses; null for a person who signed in at the command line with all scopes. */
  right: Right | null;
  /**
   * When the right ends, in milliseconds: the end of a key, a consent, or a right that it depends on. Absent = never.
   */
  endsAt?: number;
  accounts: readonly { id: string; role: Role }[];
  /** A service account works only in its own workspace, with its own role. */
  bound: { workspace: string; role: Role } | null;
  /** The default workspace of a person's key, for requests that name none. */
  home: string | null;
  /** null = every scope that the role allows. */
  scopes: ReadonlySet<string> | null;
}

export const isAccountAdmin = (caller: Caller, accountId: string): boolean =>
  caller.accounts.some((account) => account.id === accountId && account.role === "admin");

/** The right that a credential made by this caller depends on: a right that ends makes nothing that outlives it. */
export const hangsOn = ({ right, endsAt }: Caller): Right | null => (endsAt === undefined ? null : right);
