/** Images that are built from an archive with a Dockerfile (`POST /images?upload=true`): the record says how far they are. */
import { createHash } from "node:crypto";
import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { MINUTE_MS } from "../../lib/time/clock.ts";
import { BUILD_MAX_MS } from "../../node/builds/builder.ts";
import type { BuildRequest } from "../../node/builds/image-build.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Modification } from "../../store/resources/resources.ts";
import type { Deps, Uploads } from "../port.ts";
import { PROJECT_LIMITS, ticketOf } from "../uploads.ts";
import { failTag } from "./failed-tag.ts";
import { recordTag, tagsOf, typeOf } from "./images.ts";
import { startImage } from "./pull.ts";
import { ownerOf } from "./registry/place.ts";
import { releaseImages } from "./release.ts";
import { withManifest } from "./with-manifest.ts";

/** How a tag is built; the secrets of the build are among the record's own. */
export interface TagBuild {
  /** Digest of the archive; absent until it has arrived. */
  source?: string;
  dockerfile: string;
  args: Record<string, string>;
  target?: string;
  noCache: boolean;
  /** The node that builds it: the archive may be on that machine alone. */
  node: string;
}

const buildsOf = ({ state }: { state: { builds?: Record<string, TagBuild> } }): Record<string, TagBuild> =>
  state.builds ?? {};

export const withBuild = (state: Resource["state"], tag: string, build: TagBuild | undefined): Resource["state"] => {
  const { [tag]: _, ...others } = buildsOf({ state });
  return { ...state, builds: build === undefined ? others : { ...others, [tag]: build } };
};

/** Name of a build's secrets among the secrets of the record. */
export const secretsKey = (tag: string): string => `build/${tag}`;

/** The archives of builds that have not ended. */
export const neededByImage = (image: Resource): string[] =>
  Object.values(buildsOf(image)).flatMap(({ source }) => (source === undefined ? [] : [source]));

export const buildId = (uid: string, tag: string): string =>
  `${uid}-${createHash("sha256").update(tag).digest("hex").slice(0, 8)}`;

export const imageUploads: Uploads = {
  nameOf: () => "latest",
  async take({ digest }, tag, { settings }) {
    return {
      change(current) {
        const build = buildsOf(current)[tag];
        return {
          state: build
            ? withBuild(current.state, tag, { ...build, source: digest, node: settings.nodeId })
            : current.state,
          status: "BUILDING",
          event: { type: "building", status: "BUILDING", message: `The archive of tag '${tag}' has arrived.` },
        };
      },
      begin: (record, { here }) => beginBuild(record, tag, here),
    };
  },
};

/** Starts the build of a tag, unless it goes on already; the record becomes DEPLOYED or FAILED. */
export function beginBuild(record: Resource, tag: string, deps: Deps): void {
  const build = buildsOf(record)[tag];
  if (build?.source === undefined) return;
  const { source } = build;
  const fail = (error: unknown): Promise<void> =>
    failTag(record, tag, error, deps, (current) => ended(current, tag, deps));
  try {
    deps.builder.begin(buildId(record.uid, tag), record.workspace, deps.clock.now(), async (signal) => {
      try {
        await buildTag(record, tag, { ...build, source }, deps, signal);
      } catch (error) {
        // A server that stops leaves the build to the next one; a cancelled build has no record any more.
        if (!signal.aborted) await fail(error);
      }
    });
  } catch (error) {
    void fail(error);
  }
}

async function buildTag(
  record: Resource,
  tag: string,
  build: TagBuild & { source: string },
  deps: Deps,
  signal: AbortSignal,
): Promise<void> {
  const { workspace, uid, name } = record;
  const { blobs, builder, driver, settings, store } = deps;
  const archive = await blobs.find(build.source);
  if (!archive) throw new PlatformError("bad_request", "The archive is no longer there. Send it again.");
  const folder = await blobs.makeWorkFolder();
  try {
    await (await need(driver, "unpacking")).unpack(archive, folder, PROJECT_LIMITS, { signal });
    const { dockerfile, args, target, noCache } = build;
    const request: BuildRequest = {
      id: buildId(uid, tag),
      owner: await ownerOf(workspace, deps),
      ...{ folder, dockerfile, args, target, noCache },
      secrets: JSON.parse(store.resources.secretsOf(record)[secretsKey(tag)] ?? "{}") as Record<string, string>,
      env: settings.buildEnv,
      mounts: [],
      log: { workspace, plural: "images", name, uid, source: "build", revision: tag },
      base: baseImages(record, deps, store.resources.secretsOf(record).dockerConfig),
    };
    await builder.build(request, signal, async ({ name: built, image }) => {
      await withManifest({ ...image, name: built }, deps, async (content) => {
        const before = tagsOf(record).find((each) => each.name === tag);
        signal.throwIfAborted();
        // An image that was deleted meanwhile, with its workspace perhaps, does not come back.
        if (!(await store.resources.getByUid(workspace, uid))) return;
        await recordTag(
          {
            ...{ workspace, resourceType: typeOf(record), name, tag, ...content },
            ...{ status: "DEPLOYED", actor: "platform" },
            event: { type: "built", message: `Tag '${tag}' was built: ${content.digest}.` },
          },
          deps,
        );
        await store.resources.update(workspace, uid, (current) => ended(current, tag, deps));
        if (before?.loaded !== undefined && before.loaded !== content.loaded) await releaseImages([before], deps);
      });
    });
  } finally {
    await removeTree(folder);
  }
}

/** The images that a FROM names: the workspace's own, the platform's, those of registries. */
export const baseImages =
  (record: Pick<Resource, "workspace" | "kind" | "spec">, deps: Deps, dockerConfig?: unknown): BuildRequest["base"] =>
  async (name, signal) => {
    const user = {
      workspace: record.workspace,
      kind: record.kind === "image" ? String(record.spec.resourceType) : record.kind,
    };
    return (await startImage(name, user, deps, { signal, dockerConfig })).loaded;
  };

/** The record without its build and the build's secrets. */
function ended(current: Resource, tag: string, { store }: Pick<Deps, "store">): Modification {
  const { [secretsKey(tag)]: _, ...secrets } = store.resources.secretsOf(current);
  return { state: withBuild(current.state, tag, undefined), secrets };
}

/** Longest time after which a build has ended one way or the other, unless its server has. */
const LOST_MS = BUILD_MAX_MS + 10 * MINUTE_MS;

/** Takes up builds that an earlier life of this server left, and fails those of servers that are gone. */
export async function resumeBuilds(records: AsyncIterable<Resource>, deps: Deps): Promise<void> {
  for await (const record of records) {
    const { revision: awaited = "", expiresAt = Number.POSITIVE_INFINITY } = ticketOf(record) ?? {};
    if (record.status === "UPLOADING" && expiresAt < deps.clock.now()) {
      const late = new PlatformError("bad_request", "No archive came before the upload address expired.");
      await failTag(record, awaited, late, deps, (current) => ended(current, awaited, deps));
      continue;
    }
    for (const [tag, { node, source }] of Object.entries(buildsOf(record))) {
      if (source === undefined || deps.builder.beganAt(buildId(record.uid, tag)) !== null) continue;
      if (node === deps.settings.nodeId) beginBuild(record, tag, deps);
      else if (record.updatedAt < deps.clock.now() - LOST_MS) {
        const lost = new PlatformError(
          "bad_request",
          `The server '${node}' ended while it built tag '${tag}'. Send it again.`,
        );
        await failTag(record, tag, lost, deps, (current) => ended(current, tag, deps));
      }
    }
  }
}
