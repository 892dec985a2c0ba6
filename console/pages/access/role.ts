/** Roles in a workspace, for people and for service accounts. */
import { call } from "../../api/call.ts";
import { useAction } from "../../api/query.ts";
import { listChanged } from "../../api/rows.ts";
import { say } from "../../ui/toast.tsx";

export const ROLES = ["member", "admin"] as const;

export const otherRole = (role: string): string => (role === "admin" ? "member" : "admin");

export interface RoleHolder {
  /** The last part of its address. */
  id: string;
  name: string;
  /** The new role. Null: the holder is removed. */
  role: string | null;
}

export function useRoleChange(workspace: string, list: string, removed: (name: string) => string) {
  return useAction(async ({ id, name, role }: RoleHolder) => {
    const path = `${list}/${encodeURIComponent(id)}`;
    if (role === null) await call({ method: "DELETE", path, workspace });
    else await call({ method: "PUT", path, body: { role }, workspace });
    say(role === null ? removed(name) : `${name} is ${role} now.`);
    await listChanged(workspace, list);
  });
}
