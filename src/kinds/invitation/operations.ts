/** Invitations, as the invited person sees them. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { workspaceShape } from "../workspace/operations.ts";

export const invitationShape = z.looseObject({
  invitationId: z.string(),
  email: z.string(),
  role: z.enum(["admin", "member"]),
  type: z.literal("workspace"),
  invitedAt: z.string(),
  expiresAt: z.string(),
  invitedBy: z.object({
    sub: z.string().optional(),
    email: z.string().optional(),
    given_name: z.string().optional(),
    family_name: z.string().optional(),
  }),
  account: z.object({ id: z.string(), displayName: z.string() }),
  workspace: z.object({ name: z.string(), displayName: z.string() }),
  workspaceDetails: z.object({ user_number: z.int() }),
});

const common = { kind: "invitation", tenancy: "caller", role: "member" } as const;

export const invitationList = defineOperation({
  ...common,
  id: "invitationList",
  method: "GET",
  path: "/invitations",
  summary: "List the invitations that wait for your answer",
  scope: "invitations:list",
  response: z.array(invitationShape),
  verb: "list",
});

export const invitationAccept = defineOperation({
  ...common,
  id: "invitationAccept",
  method: "POST",
  path: "/invitations/{invitationId}/accept",
  summary: "Accept an invitation and become a member of its workspace",
  scope: "workspaces:accept",
  response: z.object({ email: z.string(), workspace: workspaceShape }),
});

export const invitationDecline = defineOperation({
  ...common,
  id: "invitationDecline",
  method: "POST",
  path: "/invitations/{invitationId}/decline",
  summary: "Decline an invitation",
  scope: "workspaces:decline",
  status: 204,
  response: z.null(),
});

export const invitationOperations = [invitationList, invitationAccept, invitationDecline];
