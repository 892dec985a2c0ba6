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

export const selfOperations = [passwordSet, sessionList, sessionDelete];
