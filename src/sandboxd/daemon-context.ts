/** The daemon as its handlers see it. */
import type { SandboxActivity, SandboxdConfig } from "../contract/sandbox-wire.ts";
import type { UserFiles } from "./files/user/user-files.ts";
import type { Environment } from "./process/environment.ts";
import type { ProcessTable } from "./process/table.ts";
import type { IdleTrim } from "./system/idle-trim.ts";

export interface Daemon {
  readonly config: SandboxdConfig;
  readonly startedAtMs: number;
  readonly environment: Environment;
  readonly processes: ProcessTable;
  readonly trim: IdleTrim;
  /**
   * Handles file requests with another user's rights, loaded at first use. Null in the helper process that does this
   * work.
   */
  readonly userFiles: (() => Promise<UserFiles>) | null;
  readonly counters: Pick<SandboxActivity, "terminalClients" | "portConnections" | "doorConnections">;
  activity(): SandboxActivity;
  /** Closes the daemon's sockets until the platform wakes it; absent where the platform does not ask for that. */
  sleep?: () => Promise<void>;
}
