import type { z } from "zod";
import { toIso } from "../../lib/time/clock.ts";
import type { Workspace } from "../../store/people/workspaces.ts";
import type { workspaceShape } from "./operations.ts";

export const workspaceToWire = (workspace: Workspace): z.input<typeof workspaceShape> => ({
  id: workspace.id,
  name: workspace.name,
  displayName: workspace.displayName,
  accountId: workspace.accountId,
  region: workspace.region,
  labels: workspace.labels,
  groupMappings: workspace.groupMappings,
  runtime: workspace.runtime,
  status: workspace.status,
  ...(workspace.status === "error" && workspace.statusReason ? { statusReason: workspace.statusReason } : {}),
  createdAt: toIso(workspace.createdAt),
  updatedAt: toIso(workspace.updatedAt),
  createdBy: workspace.createdBy,
  updatedBy: workspace.updatedBy,
});
