/** The task that user-files.ts gives to its helper process (child.ts) in one environment variable. */
import type { SandboxdConfig, SandboxUser } from "../../../contract/sandbox-wire.ts";

export const HELPER_VARIABLE = "SANDBOXD_FILES";

export interface HelperTask {
  socket: string;
  user: SandboxUser;
  /** Its state folder belongs to the user. */
  config: SandboxdConfig;
}
