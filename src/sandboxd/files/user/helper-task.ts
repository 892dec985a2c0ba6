/** The order that user-files.ts gives to its helper process (child.ts), by one variable. */
import type { SandboxdConfig, SandboxUser } from "../../../contract/sandbox-wire.ts";

export const HELPER_VARIABLE = "SANDBOXD_FILES";

export interface HelperTask {
  socket: string;
  user: SandboxUser;
  /** With a state folder that belongs to the user. */
  config: SandboxdConfig;
}
