/** Who is calling, as far as credentials tell. */
import type { Role } from "./operation.ts";

export type SubjectType = "user" | "service_account" | "workload";

export interface Caller {
  subject: string;
  subjectType: SubjectType;
  /** For people: how others know them; for machines: the name they were given. */
  displayName: string;
  authMethod: "api_key" | "jwt";
  keyId: string | null;
  /** When the API key of this caller ends. Absent for a key without an end, and for tokens. */
  keyEndsAt?: number;
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
