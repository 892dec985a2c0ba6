import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { sandbox } from "../sandbox/kind.ts";
import { copyOrigin, copyRules, copyState } from "./copy-rules.ts";

export type Snapshot = ResourceOf<typeof snapshot>;

export const snapshot = defineKind({
  ...copyRules,
  name: "snapshot",
  plural: "snapshots",
  summary: "The files of a sandbox at one moment, and its memory where that is asked for",
  within: sandbox,
  spec: z.object({
    ...copyState,
    memory: z
      .boolean()
      .optional()
      .describe("Also keep processes and memory, so that forks go on from this moment. Needs isolation vm-like."),
    sandboxName: z.string().optional(),
    ...copyOrigin,
  }),
  readOnlySpec: ["status", "error", "sandboxName", "workspace", "createdBy"],
  scopeWord: "sandboxes",
  scopes: { create: "sandboxes:update" },
  meters: ["sandbox_snapshot_storage_gbs"],
});
