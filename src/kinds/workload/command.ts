/** The command of a workload's copy: from its bundle, its image, or a hub server. */
import type { Exec } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { serverOf } from "../hub/servers.ts";
import { describedImage, type ImageRequest, type StartImage, startImage } from "../image/pull.ts";
import type { Deps } from "../port.ts";
import { baseImage } from "./bundle.ts";
import { type Bundle, runtimeOf } from "./deploy-state.ts";
import { workloadSpec } from "./spec.ts";

interface Command {
  image: StartImage;
  exec: Exec;
}

export async function commandOf(
  resource: Resource,
  spec: Record<string, unknown>,
  bundle: Bundle | undefined,
  deps: Deps,
  pull: ImageRequest,
): Promise<Command> {
  const { kind } = resource;
  const { image, imagePullPolicy: policy, dockerConfig, transport, command } = runtimeOf(kind, spec);
  const own = baseImage(deps);
  const base: StartImage = {
    ...{ loaded: own, changedAt: null, isNew: false },
    ...(await describedImage(own, own, deps)),
  };
  const ownCommand = kind === "application" ? command : undefined;
  const server = serverOf({ kind, spec }, deps.settings);
  if (server && server.runs !== "platform") {
    const { builtin, inVolume } = server.runs;
    const [volume] = workloadSpec(spec).volumes ?? [];
    const argv = inVolume === undefined || !volume ? [] : [`${volume.mountPath}${inVolume}`];
    return { image: base, exec: { argv, builtin } };
  }
  // The owner's `transport` decides; without one, the guess made from the code does.
  const stdio = kind === "function" && (transport === "stdio" || (transport === undefined && bundle?.stdio === true));
  const built: StartImage =
    bundle?.image === undefined
      ? base
      : { ...base, loaded: bundle.image, ...(await describedImage("the build", bundle.image, deps)) };
  return {
    image: image ? await startImage(image, resource, deps, { ...pull, policy, dockerConfig }) : built,
    exec: { argv: ownCommand ?? bundle?.argv ?? [], ...(stdio ? { builtin: "mcp-stdio" } : {}) },
  };
}
