/** Manifests that are about another, such as signatures and lists of contents. */
import { z } from "zod";
import type { Platform } from "../../port.ts";
import type { RepositoryPlace } from "./place.ts";

export interface Referrer {
  mediaType: string;
  digest: string;
  size: number;
  artifactType: string | undefined;
  annotations: Record<string, string> | undefined;
}

const shape = z.object({
  artifactType: z.string().optional(),
  config: z.object({ mediaType: z.string() }).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});

export interface ReferrersQuery {
  /** Null: of every type. */
  artifactType: string | null;
  /** Only those after the manifest with this digest. */
  last: string | null;
}

/** Bytes of manifests that are read for one page. */
const PAGE_BYTES = 8_000_000;

/** One page; `next` is where another begins. Manifests are read one after the other: they may be large, and many. */
export async function referrersOf(
  { key }: RepositoryPlace,
  digest: string,
  { artifactType: asked, last }: ReferrersQuery,
  { store }: Pick<Platform, "store">,
): Promise<{ page: Referrer[]; next: string | null }> {
  const all = await store.pushedImages.listReferrers(key, digest);
  const rest = last === null ? all : all.slice(all.indexOf(last) + 1);
  const page: Referrer[] = [];
  let bytes = 0;
  for (const own of rest) {
    const found = await store.pushedImages.getManifest(key, own);
    if (!found) continue;
    const { mediaType, content } = found;
    const { artifactType, config, annotations } = shape.safeParse(JSON.parse(content)).data ?? {};
    const type = artifactType ?? config?.mediaType;
    const size = Buffer.byteLength(content);
    if (asked === null || type === asked) page.push({ mediaType, digest: own, size, artifactType: type, annotations });
    bytes += size;
    if (bytes >= PAGE_BYTES && own !== rest.at(-1)) return { page, next: own };
  }
  return { page, next: null };
}
