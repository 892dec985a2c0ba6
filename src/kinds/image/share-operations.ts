import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { imageShape } from "./operations.ts";

export const pendingShape = z.looseObject({
  id: z.string(),
  imageName: z.string(),
  resourceType: z.string(),
  sourceWorkspace: z.string(),
  sourceAccountId: z.string(),
  targetWorkspace: z.string(),
  targetAccountId: z.string(),
  sharedBy: z.string(),
  createdAt: z.string(),
  expiresAt: z.string(),
});

const common = { kind: "image", tenancy: "workspace", role: "admin", scope: "images:share" } as const;
const path = "/images/{resourceType}/{imageName}/share";

export const imageShare = defineOperation({
  ...common,
  id: "imageShare",
  mayWait: true,
  method: "POST",
  path,
  summary: "Share an image with another workspace; one of another account has to accept (202)",
  body: z.looseObject({
    targetWorkspace: z.string().min(1).max(64),
    targetAccountId: z.string().max(64).optional(),
  }),
  response: z.union([imageShape, pendingShape]),
});

export const imageShares = defineOperation({
  ...common,
  id: "imageShares",
  method: "GET",
  path,
  summary: "List the workspaces that an image is shared with or offered to",
  role: "member",
  scope: "images:get",
  response: z.array(
    z.looseObject({
      workspace: z.string(),
      accountId: z.string(),
      status: z.enum(["active", "pending"]),
      pendingShareId: z.string().optional(),
      workspaceDisplayName: z.string().optional(),
    }),
  ),
});

export const imageUnshare = defineOperation({
  ...common,
  id: "imageUnshare",
  method: "DELETE",
  path: `${path}/{targetWorkspace}`,
  summary: "Take an image back from a workspace, or withdraw the offer",
  response: imageShape,
});

export const pendingImageShareList = defineOperation({
  ...common,
  id: "pendingImageShareList",
  method: "GET",
  path: "/pending-image-shares",
  summary: "List shares of images that wait for an answer",
  role: "member",
  query: z.object({ direction: z.enum(["incoming", "outgoing"]).optional().describe("`incoming` when left out.") }),
  response: z.array(
    pendingShape.extend({
      sharedByEmail: z.string(),
      sourceWorkspaceDisplayName: z.string().optional(),
      targetWorkspaceDisplayName: z.string().optional(),
      hasConflict: z.boolean().optional(),
    }),
  ),
});

export const pendingImageShareAccept = defineOperation({
  ...common,
  id: "pendingImageShareAccept",
  method: "POST",
  path: "/pending-image-shares/{pendingShareId}/accept",
  summary: "Accept an image of another account",
  query: z.object({ force: z.stringbool().optional().describe("Delete your own image of the same name.") }),
  response: imageShape,
});

export const pendingImageShareDecline = defineOperation({
  ...common,
  id: "pendingImageShareDecline",
  method: "POST",
  path: "/pending-image-shares/{pendingShareId}/decline",
  summary: "Decline an image of another account",
  status: 204,
  response: z.null(),
});

export const imageShareOperations = [
  imageShare,
  imageShares,
  imageUnshare,
  pendingImageShareList,
  pendingImageShareAccept,
  pendingImageShareDecline,
];
