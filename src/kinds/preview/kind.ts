import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { endOf } from "../lifetime.ts";
import { sandbox } from "../sandbox/kind.ts";

/** Headers of one preview; they are added to every request or response. */
const HEADERS_MAX = 64;
/** Port 443 leads to the sandbox API; port 80 is refused. */
const PORT_REFUSED = 80;

const headers = z
  .record(
    z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, "must be a header name"),
    z
      .string()
      .max(8192)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what the rule keeps out
      .regex(/^[^\u0000-\u0008\u000a-\u001f\u007f]*$/, "must not contain control characters"),
  )
  .refine((map) => Object.keys(map).length <= HEADERS_MAX, `must not have more than ${HEADERS_MAX} entries`);

export type Preview = ResourceOf<typeof preview>;

export const preview = defineKind({
  name: "preview",
  plural: "previews",
  summary: "An address of its own for one port of a sandbox",
  within: sandbox,
  param: "previewName",
  verbs: ["list", "get", "create", "update", "delete"],
  readOnlyMetadata: { resourceName: z.string().optional(), resourceType: z.string().optional() },
  spec: z.looseObject({
    port: z
      .int()
      .min(1)
      .max(65535)
      .refine((port) => port !== PORT_REFUSED, `must not be ${PORT_REFUSED}`),
    public: z.boolean().optional().describe("Default false: a token is needed."),
    prefixUrl: z
      .string()
      .regex(/^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$/, "must be lower-case letters, digits and hyphens")
      .max(40)
      .optional(),
    customDomain: z.string().max(253).optional(),
    expires: z.string().max(64).optional(),
    ttl: z.string().max(64).optional(),
    requestHeaders: headers.optional(),
    responseHeaders: headers.optional(),
    url: z.string().optional(),
    region: z.string().optional(),
  }),
  readOnlySpec: ["url", "region"],
  initialStatus: "DEPLOYED",
  endOf: (resource) => endOf(resource.spec, resource),
  scopeWord: "sandboxes",
  scopes: { list: "sandboxes:get" },
  query: {
    create: { force: z.stringbool().optional().describe("Takes the custom host from another preview.") },
  },
});
