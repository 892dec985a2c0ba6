/** Code with a Dockerfile at its root: it is built to an image, which the workload runs. */
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../contract/errors.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import type { BuildRequest } from "../../node/builds/image-build.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { baseImages } from "../image/build.ts";
import { ownerOf } from "../image/registry/place.ts";
import type { Deps } from "../port.ts";
import type { Bundle } from "./deploy-state.ts";
import { logTag } from "./log-tag.ts";
import { BUILD_ENV_FILE, buildEnvOf } from "./start-command.ts";
import { trustOf } from "./trust.ts";

export const DOCKERFILE = "Dockerfile";
/** Registry credentials that some clients put into the archive; no image gets the file. */
const DOCKER_CONFIG_FILE = ".docker/config.json";
const DOCKER_CONFIG_BYTES_MAX = 64 * 1024;

export const hasDockerfile = async (folder: string): Promise<boolean> =>
  (await stat(join(folder, DOCKERFILE)).catch(() => null))?.isFile() ?? false;

interface FolderBuild {
  id: string;
  revision: string;
  /** Folder with the unpacked archive. */
  folder: string;
}

/** Build arguments and registry credentials come from files of the archive, which no image gets. */
export async function buildRequest(
  resource: Resource,
  { id, revision, folder }: FolderBuild,
  deps: Deps,
): Promise<BuildRequest> {
  const { settings } = deps;
  const args = await buildEnvOf(folder, settings.brand);
  const dockerConfig = await dockerConfigIn(folder);
  for (const file of [BUILD_ENV_FILE, DOCKER_CONFIG_FILE]) await rm(join(folder, file), { force: true });
  const trust = await trustOf(resource, deps);
  return {
    ...{ id, folder, args, dockerfile: DOCKERFILE, noCache: false, secrets: {} },
    env: { ...settings.buildEnv, ...trust.env },
    mounts: trust.mounts,
    owner: await ownerOf(resource.workspace, deps),
    log: logTag(resource, "build", { revision }),
    base: baseImages(resource, deps, dockerConfig),
  };
}

/**
 * Starts the build in the background; `keep` records the bundle. The folder is removed at the end. A build that failed is
 * told to the next call with the same id.
 */
export async function beginImageBuild(
  resource: Resource,
  build: FolderBuild,
  deps: Deps,
  keep: (bundle: Bundle) => Promise<unknown>,
): Promise<void> {
  const { builder, clock, driver } = deps;
  await need(driver, "building");
  const request = await buildRequest(resource, build, deps);
  builder.begin(build.id, resource.workspace, clock.now(), async (signal) => {
    try {
      await builder.build(request, signal, ({ name }) => keep({ image: name, argv: [] }));
    } catch (error) {
      if (!signal.aborted) builder.noteFailure(build.id, error);
    } finally {
      await removeTree(build.folder);
    }
  });
}

async function dockerConfigIn(folder: string): Promise<string | undefined> {
  const file = join(folder, DOCKER_CONFIG_FILE);
  const found = await stat(file).catch(() => null);
  if (!found?.isFile()) return undefined;
  if (found.size > DOCKER_CONFIG_BYTES_MAX)
    throw new PlatformError("bad_request", `${DOCKER_CONFIG_FILE} in the archive is too large.`);
  return readFile(file, "utf8");
}
