import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { MadeBy } from "../../contract/preview-tokens.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { preview } from "../preview/kind.ts";

/** Tokens of one preview. Clients make one per session; more indicate a leak. */
const TOKENS_MAX = 1000;

export type PreviewToken = ResourceOf<typeof previewToken>;

export const previewToken = defineKind({
  name: "previewtoken",
  plural: "previewtokens",
  summary: "A key to one private preview",
  within: preview,
  path: "/tokens",
  param: "tokenName",
  verbs: ["list", "create"],
  // Clients name tokens after the current millisecond, so two tokens may have the same name.
  namesShared: true,
  nameOptional: true,
  countMax: TOKENS_MAX,
  readOnlyMetadata: {
    previewName: z.string().optional(),
    resourceName: z.string().optional(),
    resourceType: z.string().optional(),
  },
  spec: z.looseObject({
    expiresAt: z.string().max(64).optional(),
    token: z.string().optional().describe("Made by the platform."),
    expired: z.boolean().optional(),
  }),
  recorded: z.custom<{ madeBy?: MadeBy }>(),
  specOptional: true,
  readOnlySpec: ["token", "expired"],
  secrets: ["spec.token"],
  secretsShown: "always",
  scopeWord: "sandboxes",
  scopes: { list: "sandboxes:get", create: "sandboxes:update" },
});
