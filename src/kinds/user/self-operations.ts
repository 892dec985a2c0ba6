/** Operations of people on their own sign-in: the password and the open sessions. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../contract/password-length.ts";

export const newPassword = z.string().min(PASSWORD_LENGTH_MIN).max(PASSWORD_LENGTH_MAX);

const common = { kind: "session", tenancy: "caller", role: "member" } as const;
export const done = z.object({ message: z.string() });

export const sessionShape = z.object({
  id: z.string(),
  type: z.enum(["browser", "program"]).describe("A browser that is signed in, or a program that was allowed access."),
  client: z.string().optional().describe("Which program."),
  createdAt: z.string(),
  expiresAt: z.string(),
});

/** Workspaces that `userMe` lists. A caller with more of them asks for the list of workspaces. */
export const WORKSPACES_MAX = 500;

const role = z.enum(["admin", "member"]);

export const callerShape = z.object({
  sub: z.string(),
  type: z.enum(["user", "service_account", "workload"]),
  name: z.string().describe("The email address of a person, the name of a machine."),
  givenName: z.string().optional(),
  familyName: z.string().optional(),
  authMethod: z.enum(["api_key", "jwt"]),
  expiresAt: z.string().optional().describe("When the right behind these credentials ends; absent = it has no end."),
  scopes: z.array(z.string()).nullable().describe("The scopes of these credentials; null = all scopes."),
  accounts: z.array(z.object({ id: z.string(), role })),
  workspaces: z
    .array(z.object({ name: z.string(), displayName: z.string(), accountId: z.string(), role }))
    .describe(
      `At most ${WORKSPACES_MAX}, by name. Credentials without the scope workspaces:list see only \`workspace\`.`,
    ),
  hasMoreWorkspaces: z.boolean(),
  workspace: z
    .string()
    .nullable()
    .describe(
      "The workspace that `refused` is about: the named one, or the default of these credentials; null = none or no access.",
    ),
  refused: z
    .record(z.string(), z.string())
    .describe(
      "Operations that these credentials may not call in `workspace`, with the reason. A key such as " +
        "`sandboxGet?show_secrets=true` is one use of an operation that may be called otherwise.",
    ),
});

export const userMe = defineOperation({
  ...common,
  kind: "user",
  id: "userMe",
  method: "GET",
  path: "/users/me",
  summary: "Who you are, your workspaces and roles, and what you may not do",
  scope: null,
  query: z.object({ workspace: z.string().max(128).optional().describe("What may be done in this workspace.") }),
  response: callerShape,
});

export const passwordSet = defineOperation({
  ...common,
  kind: "password",
  id: "passwordSet",
  method: "PUT",
  path: "/users/me/password",
  summary: "Set your password; every session of yours ends",
  scope: "apiKey:write",
  body: z.looseObject({
    newPassword,
    currentPassword: z
      .string()
      .max(PASSWORD_LENGTH_MAX)
      .optional()
      .describe("Needed when there is one already, unless an API key with all scopes and without an end asks."),
  }),
  response: done,
});

export const sessionList = defineOperation({
  ...common,
  id: "sessionList",
  method: "GET",
  path: "/users/me/sessions",
  summary: "List the browsers and programs that are signed in as you",
  scope: "apiKey:list",
  response: z.array(sessionShape),
  verb: "list",
});

export const sessionDelete = defineOperation({
  ...common,
  id: "sessionDelete",
  method: "DELETE",
  path: "/users/me/sessions/{sessionId}",
  summary: "Sign a browser or program out; its tokens stop working at once",
  scope: "apiKey:write",
  response: done,
  verb: "delete",
});

export const consoleLinkCreate = defineOperation({
  ...common,
  kind: "consolelink",
  id: "consoleLinkCreate",
  method: "POST",
  path: "/users/me/console_link",
  summary: "Make a link that opens the console signed in as you; it works once",
  scope: "apiKey:write",
  response: z.object({
    url: z.string().describe("Its secret is behind the `#`."),
    expiresAt: z.string(),
  }),
});

export const selfOperations = [userMe, passwordSet, sessionList, sessionDelete, consoleLinkCreate];
