/** Variables that the platform gives every workload: who it is, and where the platform is. */
import { PLATFORM_DOOR_PORT } from "../../runtime/driver.ts";
import type { Resource } from "../../store/resource.ts";
import type { Settings } from "../port.ts";

export function platformEnv({ workspace, kind, name, spec }: Resource, settings: Settings): Record<string, string> {
  // A workload cannot reach the host's loopback; this door on its own leads to the platform.
  const door = `http://127.0.0.1:${PLATFORM_DOOR_PORT}`;
  return {
    HOST: "0.0.0.0",
    BL_CLOUD: "true",
    BL_WORKSPACE: workspace,
    BL_NAME: name,
    BL_TYPE: kind,
    BL_REGION: typeof spec.region === "string" ? spec.region : settings.region,
    BL_GENERATION: "mk3",
    BL_API_URL: `${door}/v0`,
    BL_RUN_URL: door,
    DO_NOT_TRACK: "1",
  };
}
