/** What a copy of a workload runs: the code of its bundle, an image, or a server of the hub. */
import type { Exec } from "../../node/driver.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { serverOf } from "../hub/servers.ts";
import { driverImage } from "../image/resolve.ts";
import type { Deps } from "../port.ts";
import type { Attachment } from "../sandbox/machine.ts";
import { baseImage } from "./bundle.ts";
import { type Bundle, runtimeOf } from "./deploy-state.ts";

interface Command {
  image: string;
  exec: Exec;
}

export async function commandOf(
  resource: Resource,
  spec: Record<string, unknown>,
  bundle: Bundle | undefined,
  deps: Deps,
): Promise<Command> {
  const { kind } = resource;
  const { image, transport, command } = runtimeOf(kind, spec);
  const ownCommand = kind === "application" ? command : undefined;
  const server = serverOf({ kind, spec }, deps.settings);
  if (server && server.runs !== "platform") {
    const { builtin, inVolume } = server.runs;
    const [volume] = (spec.volumes ?? []) as Attachment[];
    const argv = inVolume === undefined || !volume ? [] : [`${volume.mountPath}${inVolume}`];
    return { image: baseImage(deps), exec: { argv, builtin } };
  }
  // What its owner says counts; code that was not said to be anything is what it looks like.
  const stdio = kind === "function" && (transport === "stdio" || (transport === undefined && bundle?.stdio === true));
  return {
    image: image ? await driverImage(image, resource, deps) : baseImage(deps),
    exec: { argv: ownCommand ?? bundle?.argv ?? [], ...(stdio ? { builtin: "mcp-stdio" } : {}) },
  };
}
