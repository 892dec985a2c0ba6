/**
 * The image of a sandbox whose archive was sent (`upload=true`): it is built from the Dockerfile at the archive's root,
 * recorded as `sandbox/NAME`, and named in the sandbox's spec, from where the sandbox starts like any other.
 */
import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import type { BuiltImage } from "../../node/builds/image-build.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { recordTag } from "../image/images.ts";
import type { Deps, Uploads } from "../port.ts";
import { PROJECT_LIMITS } from "../uploads.ts";
import { buildRequest, hasDockerfile } from "../workload/image-bundle.ts";
import { stateOf } from "./recorded.ts";
import type { SandboxBuild } from "./state.ts";

export const sandboxUploads: Uploads = {
  awaiting: {
    status: "UPLOADING",
    event: { type: "uploading", message: "Waits for the archive with its Dockerfile." },
  },
  nameOf: (_call, current) => String((current?.generation ?? 0) + 1),
  async take({ digest }, revision) {
    return {
      change: (current) => ({
        state: { ...stateOf(current), build: { source: digest, revision } satisfies SandboxBuild },
        status: "BUILDING",
        intent: true,
        event: { type: "building", message: "The archive has arrived.", revision },
      }),
    };
  },
};

export const buildIdOf = ({ uid }: Pick<Resource, "uid">): string => `${uid}-build`;

/** The archive of a build that has not ended. */
export const neededBySandbox = (sandbox: Resource): string[] => {
  const { build } = stateOf(sandbox);
  return build ? [build.source] : [];
};

/** Starts the build, unless it goes on already; the record becomes DEPLOYING or FAILED. */
export function beginSandboxBuild(sandbox: Resource, deps: Deps): void {
  const { build } = stateOf(sandbox);
  if (!build) return;
  deps.builder.begin(buildIdOf(sandbox), sandbox.workspace, deps.clock.now(), async (signal) => {
    try {
      await buildSandbox(sandbox, build, deps, signal);
    } catch (error) {
      // A server that stops leaves the build to the next one.
      if (!signal.aborted) await failBuild(sandbox, build, error, deps);
    }
  });
}

async function buildSandbox(sandbox: Resource, build: SandboxBuild, deps: Deps, signal: AbortSignal): Promise<void> {
  const { blobs, builder, driver } = deps;
  const archive = await blobs.find(build.source);
  if (!archive) throw new PlatformError("bad_request", "The archive is no longer there. Send it again.");
  const folder = await blobs.makeWorkFolder();
  try {
    await (await need(driver, "unpacking")).unpack(archive, folder, PROJECT_LIMITS, { signal });
    if (!(await hasDockerfile(folder)))
      throw new PlatformError(
        "bad_request",
        "There is no Dockerfile at the root of the archive: a sandbox runs an image.",
      );
    const place = { id: buildIdOf(sandbox), revision: build.revision, folder };
    const request = await buildRequest(sandbox, place, deps);
    await builder.build(request, signal, (built) => keepBuilt(sandbox, build, built, deps, signal));
  } finally {
    await removeTree(folder);
  }
}

async function keepBuilt(
  { workspace, uid, name }: Resource,
  build: SandboxBuild,
  { name: loaded, image }: BuiltImage,
  deps: Deps,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const current = await deps.store.resources.getByUid(workspace, uid);
  if (!current || current.deletedAt !== null) return;
  const { digest, sizeBytes } = image;
  const message = `Built from the archive of sandbox '${name}': ${digest}.`;
  for (const tag of [build.revision, "latest"])
    await recordTag(
      {
        ...{ workspace, resourceType: "sandbox", name, tag, loaded, digest, sizeBytes, status: "DEPLOYED" },
        ...{ event: { type: "built", message }, actor: "platform" },
      },
      deps,
    );
  await deps.store.resources.update(workspace, uid, (current) =>
    isSame(current, build)
      ? {
          spec: {
            ...current.spec,
            runtime: { ...(current.spec.runtime as object), image: `sandbox/${name}:${build.revision}` },
          },
          state: { ...stateOf(current), build: undefined },
          status: "DEPLOYING",
          intent: true,
          event: { type: "built", message: `Built: ${digest}.`, revision: build.revision },
        }
      : null,
  );
}

/** A later archive has replaced this one. */
const isSame = (current: Resource, { revision }: SandboxBuild): boolean =>
  stateOf(current).build?.revision === revision;

export async function failBuild(
  { workspace, uid }: Resource,
  build: Pick<SandboxBuild, "revision">,
  error: unknown,
  { store, log }: Pick<Deps, "store" | "log">,
): Promise<void> {
  const isTold = error instanceof PlatformError && error.status < 500;
  if (!isTold) log.warn({ err: error, uid }, "the image of a sandbox could not be built");
  const message = isTold ? error.message : "The image could not be built; the server's log says why.";
  await store.resources.update(workspace, uid, (current) => ({
    status: "FAILED",
    observedGeneration: current.generation,
    state: { ...stateOf(current), build: undefined, upload: undefined },
    event: { type: "failed", status: "FAILED", message, revision: build.revision },
  }));
}
