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

export async function referrersOf(
  { key }: RepositoryPlace,
  digest: string,
  { store }: Pick<Platform, "store">,
): Promise<Referrer[]> {
  const about = (await store.pushedImages.listManifests(key)).filter(({ subject }) => subject === digest);
  const found = await Promise.all(about.map((each) => store.pushedImages.getManifest(key, each.digest)));
  return found.flatMap((each) => {
    if (!each) return [];
    const { artifactType, config, annotations } = shape.safeParse(JSON.parse(each.content)).data ?? {};
    const { mediaType, digest: own, content } = each;
    const type = artifactType ?? config?.mediaType;
    return [{ mediaType, digest: own, size: Buffer.byteLength(content), artifactType: type, annotations }];
  });
}
