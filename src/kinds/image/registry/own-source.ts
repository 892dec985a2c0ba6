/** Images of this platform, as the puller reads them: no request leaves its servers. */
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { Reference } from "../../../contract/image-reference.ts";
import type { PullRequest } from "../../../node/images/puller.ts";
import { NO_CREDENTIALS } from "../../../registry/credentials.ts";
import { RegistryProblem } from "../../../registry/problem.ts";
import type { Source } from "../../../registry/repository.ts";
import type { Received } from "../../../registry/transport.ts";
import type { Deps } from "../../port.ts";
import { tagsOf } from "../images.ts";
import { blobFile } from "./blobs.ts";
import { keptBlob, keptManifest, keptTag } from "./kept-images.ts";
import type { RepositoryPlace } from "./place.ts";

type SourceDeps = Pick<Deps, "store" | "blobs" | "driver" | "partOfPeer">;

/** `workspace`: who asks. */
export const ownRequest = (
  place: RepositoryPlace,
  reference: Reference,
  workspace: string,
  deps: SourceDeps,
): PullRequest => ({
  ...{ workspace, reference, credentials: NO_CREDENTIALS },
  // No registry has a name that begins like this.
  own: { source: ownSource(place, deps), repository: `own:${place.key.owner}/${place.key.repository}` },
});

export function ownSource(place: RepositoryPlace, deps: SourceDeps): Source {
  const { key, record } = place;
  const { pushedImages } = deps.store;
  const gone = (): RegistryProblem => new RegistryProblem("not_found", "it is no longer there");
  const fileOf = async (digest: string): Promise<string | null> =>
    (await pushedImages.blobBytes(key, digest)) === null
      ? ((await keptBlob(place, digest, deps))?.file ?? null)
      : blobFile(digest, deps);
  return {
    fileOf,
    async send(rest) {
      const [kind = "", name = ""] = rest.split("/");
      if (kind === "blobs") {
        const file = await fileOf(name);
        if (file !== null) return { status: 200, headers: {}, body: createReadStream(file) };
        const kept = await keptBlob(place, name, deps);
        if (!kept) throw gone();
        return { status: 200, headers: {}, body: await kept.open().catch(() => Promise.reject(gone())) };
      }
      const keptBy = keptTag(place, name);
      const kept = keptBy && (await keptManifest(keptBy, deps));
      if (kept) return manifestAnswer(kept.mediaType, kept.digest, kept.content);
      const tag = record && tagsOf(record).find((each) => each.name === name);
      const manifest = await pushedImages.getManifest(key, tag?.named ?? name);
      if (!manifest) throw gone();
      return manifestAnswer(manifest.mediaType, manifest.digest, Buffer.from(manifest.content));
    },
  };
}

const manifestAnswer = (mediaType: string, digest: string, content: Buffer): Received => ({
  status: 200,
  headers: { "content-type": mediaType, "docker-content-digest": digest },
  body: Readable.from([content]),
});
