/** The documents of registries: what an index and a manifest look like, and which of them describe an image to run. */
import { z } from "zod";

const OCI = "application/vnd.oci.image";
const DOCKER = "application/vnd.docker.distribution";
export const INDEXES = [`${OCI}.index.v1+json`, `${DOCKER}.manifest.list.v2+json`];
export const MANIFESTS = [`${OCI}.manifest.v1+json`, `${DOCKER}.manifest.v2+json`];
export const LAYERS: ReadonlySet<string> = new Set([
  `${OCI}.layer.v1.tar`,
  `${OCI}.layer.v1.tar+gzip`,
  `${OCI}.layer.v1.tar+zstd`,
  "application/vnd.docker.image.rootfs.diff.tar",
  "application/vnd.docker.image.rootfs.diff.tar.gzip",
  "application/vnd.docker.image.rootfs.diff.tar.zstd",
]);
const CONFIGS: ReadonlySet<string> = new Set([
  `${OCI}.config.v1+json`,
  "application/vnd.docker.container.image.v1+json",
]);

/** Largest manifest or index; the specification asks registries for 4 MB. */
export const MANIFEST_BYTES_MAX = 4 * 1024 * 1024;
const LAYERS_MAX = 128; // as many as image tools make
const INDEX_ENTRIES_MAX = 10_000;

export const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
export const descriptor = z.object({ mediaType: z.string(), digest, size: z.int().min(0) });
const platform = z.object({ architecture: z.string(), os: z.string(), variant: z.string().optional() });
export const indexShape = z.object({
  manifests: z.array(descriptor.extend({ platform: platform.optional() })).max(INDEX_ENTRIES_MAX),
});
export const manifestShape = z.object({ config: descriptor, layers: z.array(descriptor).max(LAYERS_MAX) });

/** Whether a manifest describes an image, and not another thing that registries keep, such as a signature. */
export const holdsFiles = ({ config, layers }: z.infer<typeof manifestShape>): boolean =>
  CONFIGS.has(config.mediaType) && layers.every(({ mediaType }) => LAYERS.has(mediaType));
