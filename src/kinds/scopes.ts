/** Every scope that a token or key can carry. */
import { OPERATIONS } from "./index.ts";

/** Scopes of the published list, kept even where no operation requires them yet. */
const PUBLISHED: Record<string, string> = {
  configurations: "list",
  integrations: "create list",
  invitations: "list",
  jobs: "create delete get list update",
  locations: "list",
  mcphub: "list",
  sandboxes: "control create delete get list update",
  sandboxhub: "list",
  templates: "get list",
  volumeTemplates: "create delete get list upsert",
  workspaces: "accept create decline delete get invite leave list remove update",
};

/** Includes every scope, but does not raise the caller's role. */
export const ADMIN_SCOPE = "admin";

export const SCOPES: ReadonlySet<string> = new Set([
  ADMIN_SCOPE,
  ...[
    ...OPERATIONS.flatMap(({ scope }) => (scope === null ? [] : [scope])),
    ...Object.entries(PUBLISHED).flatMap(([resource, actions]) =>
      actions.split(" ").map((action) => `${resource}:${action}`),
    ),
  ].sort(),
]);

/** Scopes that are useful to a member: scopes whose operations all need the role admin are left out. */
export const MEMBER_SCOPES: ReadonlySet<string> = new Set(
  [...SCOPES].filter((scope) => {
    const operations = OPERATIONS.filter((operation) => operation.scope === scope);
    const isUseful = operations.length === 0 || operations.some(({ role }) => role === "member");
    return scope !== ADMIN_SCOPE && isUseful;
  }),
);
