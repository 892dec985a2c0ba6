/** Images that were pushed to this platform, as the puller reads them: no request leaves the server. */
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { Reference } from "../../../contract/image-reference.ts";
import type { PullRequest } from "../../../node/images/puller.ts";
import { NO_CREDENTIALS } from "../../../registry/credentials.ts";
import { RegistryProblem } from "../../../registry/problem.ts";
import type { Source } from "../../../registry/repository.ts";
import type { Deps } from "../../port.ts";
import { tagsOf } from "../images.ts";
import { blobFile } from "./blobs.ts";
import type { RepositoryPlace } from "./place.ts";

type SourceDeps = Pick<Deps, "store" | "blobs">;

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

function ownSource({ key, record }: RepositoryPlace, deps: SourceDeps): Source {
  const { pushedImages } = deps.store;
  const gone = (): RegistryProblem => new RegistryProblem("not_found", "it is no longer there");
  const fileOf = async (digest: string): Promise<string | null> =>
    (await pushedImages.blobBytes(key, digest)) === null ? null : blobFile(digest, deps);
  return {
    fileOf,
    async send(rest) {
      const [kind = "", name = ""] = rest.split("/");
      if (kind === "blobs") {
        const file = await fileOf(name);
        if (file === null) throw gone();
        return { status: 200, headers: {}, body: createReadStream(file) };
      }
      const tag = record && tagsOf(record).find((each) => each.name === name);
      const manifest = await pushedImages.getManifest(key, tag?.named ?? name);
      if (!manifest) throw gone();
      const headers = { "content-type": manifest.mediaType, "docker-content-digest": manifest.digest };
      return { status: 200, headers, body: Readable.from([Buffer.from(manifest.content)]) };
    },
  };
}
