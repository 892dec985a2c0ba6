import { z } from "zod";
import { dryRun } from "../../contract/dry-run.ts";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";

const DOCKER_CONFIG_MAX = 64 * 1024;
const REFERENCE_MAX = 512;

export const resourceType = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, "must be the type of resource that the image is for, such as sandbox or agent");

export const tagName = z
  .string()
  .regex(/^\w[\w.-]{0,127}$/, "must be letters, digits, dots, hyphens and underscores, at most 128");

/** host[:port]/path[:tag][@digest], as registries have it. */
const reference = z
  .string()
  .max(REFERENCE_MAX)
  .regex(
    /^(?:[A-Za-z0-9.-]+(?::\d{1,5})?\/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$/,
    "must be an image reference, such as ghcr.io/acme/tool:1.2",
  );

const BUILD_VALUES_MAX = 100;
const BUILD_VALUE_MAX = 64 * 1024;

const buildValues = (name: RegExp) =>
  z
    .record(z.string().regex(name), z.string().max(BUILD_VALUE_MAX))
    .refine((values) => Object.keys(values).length <= BUILD_VALUES_MAX, `must be at most ${BUILD_VALUES_MAX}`);

const buildOptions = z.object({
  dockerfile: z.string().max(512).optional().describe("Its path in the archive. Default: Dockerfile."),
  target: z.string().max(128).optional().describe("The stage that becomes the image. Default: the last."),
  args: buildValues(/^[A-Za-z_]\w{0,127}$/)
    .optional()
    .describe("Values of ARG."),
  secrets: buildValues(/^[\w.-]{1,128}$/)
    .optional()
    .describe("For RUN --mount=type=secret; sealed until the build has ended, never shown."),
  noCache: z.boolean().optional().describe("Use no step of an earlier build again."),
});

const tag = z.looseObject({
  name: z.string(),
  image: z.string().optional().describe("Where it comes from."),
  digest: z.string().optional().describe("What runs: of the manifest; of a file or a build, of the image."),
  status: fields.status.optional().describe("FAILED when nothing could be pulled; the last events say why."),
  size: z.int().optional().describe("Bytes; absent while the image has not been fetched."),
  createdAt: z.string(),
  updatedAt: z.string(),
});

export const imageShape = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    displayName: z.string().optional(),
    resourceType: z.string(),
    workspace: z.string(),
    sourceWorkspace: z.string().optional().describe("The workspace that shares it with this one."),
    status: fields.status.optional(),
    events: z.array(fields.event).optional(),
    createdAt: z.string(),
    updatedAt: z.string(),
    lastDeployedAt: z.string().optional(),
  }),
  spec: z.looseObject({ size: z.int().optional(), tags: z.array(tag) }),
});

const common = { kind: "image", tenancy: "workspace", role: "member" } as const;
const one = "/images/{resourceType}/{imageName}";

export const imageList = defineOperation({
  ...common,
  id: "imageList",
  method: "GET",
  path: "/images",
  summary: "List images, your own and those shared with you",
  scope: "images:list",
  response: z.array(imageShape),
});

export const imageGet = defineOperation({
  ...common,
  id: "imageGet",
  method: "GET",
  path: one,
  summary: "Read one image; `_` stands for any resource type",
  scope: "images:get",
  response: imageShape,
});

export const imageCreate = defineOperation({
  ...common,
  id: "imageCreate",
  method: "POST",
  path: "/images",
  summary:
    "Pull an image of a registry, or build one from an archive with a Dockerfile, and keep it under a name of your own",
  scope: "images:create",
  query: z.object({
    upload: z
      .stringbool()
      .optional()
      .describe("Build: the answer names the address for the archive in X-Service-Upload-Url."),
    "skip-build": z.stringbool().optional(),
  }),
  body: z.looseObject({
    name: fields.name
      .optional()
      .describe("Left out with `image`: workloads use the image by its reference, as after a pull for one of them."),
    resourceType: resourceType.optional().describe("Needed together with `name`."),
    image: reference.optional(),
    tag: tagName.optional().describe("Default: the tag of the reference; of a build `latest`."),
    build: buildOptions.optional().describe("How the archive is built."),
    generation: fields.generation,
    dockerConfig: z.string().max(DOCKER_CONFIG_MAX).optional().describe("Registry credentials; sealed, never shown."),
  }),
  response: z.object({
    name: z.string(),
    resourceType: z.string(),
    image: z.string().optional(),
    message: z.string(),
    build: z.boolean(),
  }),
});

export const imageLoad = defineOperation({
  ...common,
  id: "imageLoad",
  method: "PUT",
  path: `${one}/tags/{tagName}`,
  summary: "Take in an image as a file: what `docker save` writes, or an OCI image layout in a tar",
  scope: "images:create",
  stream: "application/x-tar",
  response: imageShape,
});

export const imageDelete = defineOperation({
  ...common,
  id: "imageDelete",
  method: "DELETE",
  path: one,
  summary: "Delete an image that nothing uses; one that was shared with you is given back",
  scope: "images:delete",
  response: imageShape,
});

export const imageTagDelete = defineOperation({
  ...common,
  id: "imageTagDelete",
  method: "DELETE",
  path: `${one}/tags/{tagName}`,
  summary: "Delete one tag of an image",
  scope: "images:delete",
  response: imageShape,
});

export const imageCleanup = defineOperation({
  ...common,
  id: "imageCleanup",
  method: "DELETE",
  path: "/images",
  summary: "Delete every image that nothing uses and nobody borrows",
  scope: "images:delete",
  query: z.object(dryRun),
  response: z.object({
    deleted: z.int(),
    message: z.string(),
    images: z.array(z.string()).describe("What is deleted, by name and tag."),
  }),
});

export const imageOperations = [imageList, imageGet, imageCreate, imageLoad, imageDelete, imageTagDelete, imageCleanup];
