/** What a resource uses, and what uses it. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

/** Resources told on each side. */
export const SHOWN_MAX = 200;
const WORD_MAX = 256;

const side = z.array(z.object({ kind: z.string(), name: z.string() }));

export const referenceFind = defineOperation({
  id: "referenceFind",
  method: "GET",
  path: "/references",
  summary: "What a resource uses, and what uses it",
  tenancy: "workspace",
  scope: "workspaces:get",
  role: "member",
  kind: "reference",
  query: z.object({
    kind: z.string().min(1).max(WORD_MAX).describe("The kind of the resource, singular or plural; image for an image."),
    name: z.string().min(1).max(WORD_MAX).describe("The name of the resource; TYPE/NAME of an image."),
  }),
  response: z.object({
    uses: side.describe("Resources that this one names, such as volumes, policies and connections."),
    usedBy: side.describe(
      `Resources that name this one; only kinds that the credentials may list, at most ${SHOWN_MAX}.`,
    ),
  }),
});

export const referenceOperations = [referenceFind];
