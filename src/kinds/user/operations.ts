/** The people of a workspace: members and invited people. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

/** Longest email address that mail systems must accept (RFC 5321). */
const EMAIL_MAX = 254;

/** Identifies a person, regardless of case. */
export const email = z.email().max(EMAIL_MAX).toLowerCase();

const role = z.enum(["admin", "member"]);

export const userShape = z.looseObject({
  sub: z.string().optional(),
  email: z.string(),
  given_name: z.string().optional(),
  family_name: z.string().optional(),
  role,
  accepted: z.boolean(),
  email_verified: z.boolean(),
  expired: z.boolean().describe("The invitation was not accepted in time."),
  source: z.enum(["directory_sync", "invitation", "domain_capture"]),
  url: z.string().optional().describe("A new link to an invitation whose role was raised; the former one has ended."),
  urlExpiresAt: z.string().optional(),
});

export const pendingInvitation = z.looseObject({
  invitationId: z.string(),
  email: z.string(),
  role,
  workspace: z.string(),
  invitedBy: z.string(),
  expiresAt: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
  createdBy: z.string(),
  updatedBy: z.string(),
  url: z
    .string()
    .describe("The link for the invited person, shown once. Whoever opens it can take the invitation; it works once."),
  urlExpiresAt: z.string().describe("Inviting again makes a new link and ends this one."),
});

const common = { kind: "user", tenancy: "workspace", role: "admin" } as const;

export const userList = defineOperation({
  ...common,
  id: "userList",
  method: "GET",
  path: "/users",
  summary: "List the members of the workspace and open invitations",
  role: "member",
  scope: "workspaces:list",
  response: z.array(userShape),
  verb: "list",
});

export const userInvite = defineOperation({
  ...common,
  id: "userInvite",
  method: "POST",
  path: "/users",
  summary: "Invite somebody to the workspace, with a link to hand on; inviting again renews the invitation",
  scope: "workspaces:invite",
  body: z.looseObject({ email, role: role.optional().describe("`member` when left out.") }),
  response: pendingInvitation,
});

export const userUpdate = defineOperation({
  ...common,
  id: "userUpdate",
  method: "PUT",
  path: "/users/{subOrEmail}",
  summary: "Change the role of a member or of an open invitation",
  scope: "workspaces:update",
  body: z.looseObject({ role }),
  response: userShape,
  verb: "update",
});

export const userRemove = defineOperation({
  ...common,
  id: "userRemove",
  method: "DELETE",
  path: "/users/{subOrEmail}",
  summary: "Remove a member, or withdraw an invitation",
  scope: "workspaces:remove",
  response: z.object({ message: z.string() }),
  verb: "delete",
});

export const userOperations = [userList, userInvite, userUpdate, userRemove];
