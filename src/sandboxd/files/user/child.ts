/**
 * `sandboxd files`: the helper of user-files.ts. The helper starts as root, listens on a socket that only root may
 * connect to, gives up root in all of its threads, and verifies that before it serves a request.
 */

import { chmodSync, readdirSync, readFileSync, writeSync } from "node:fs";
import type { SandboxdConfig } from "../../../contract/sandbox-wire.ts";
import type { Daemon } from "../../daemon-context.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Call, readJson } from "../../http/call.ts";
import { sendJson } from "../../http/send.ts";
import { createApiServer } from "../../http/server.ts";
import { becomeUser, endWithParent } from "../../libc.ts";
import { CODEGEN_TOOLS } from "../../mcp/tools-codegen.ts";
import { FILE_TOOLS } from "../../mcp/tools-files.ts";
import { Environment } from "../../process/environment.ts";
import { IdleTrim } from "../../system/idle-trim.ts";
import type { HelperTask } from "./helper-task.ts";
import { HELPER_VARIABLE } from "./helper-task.ts";

export async function runFilesChild(): Promise<void> {
  const parent = process.ppid;
  const { socket, user, config } = JSON.parse(process.env[HELPER_VARIABLE] ?? "") as HelperTask;
  delete process.env[HELPER_VARIABLE];
  process.umask(0o022);
  const environment = new Environment(config, process.env);
  if (!environment.isOwned) throw new Error("a sandbox without an owner has no files to handle");
  const server = createApiServer(helperDaemon(config, environment), callTool);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path: socket }, resolve);
  });
  chmodSync(socket, 0o600);
  becomeUser(user.uid, user.gid);
  assertUser(user.uid);
  // Must follow becomeUser: a change of user clears the parent-death signal.
  endWithParent();
  if (process.ppid !== parent) process.exit(0);
  writeSync(1, "READY\n");
}

/** Checks every thread, since credentials are per thread. The four ids: real, effective, saved, file system. */
function assertUser(uid: number): void {
  for (const task of readdirSync("/proc/self/task")) {
    const status = readFileSync(`/proc/self/task/${task}/status`, "utf8");
    const ids = /^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$/m.exec(status)?.slice(1) ?? [];
    const capabilities = /^CapEff:\s+0+$/m.test(status);
    if (ids.length !== 4 || ids.some((id) => Number(id) !== uid) || !capabilities)
      throw new Error("the helper for files could not give up root");
  }
}

/** A Daemon with only the members that file handlers use. */
function helperDaemon(config: SandboxdConfig, environment: Environment): Daemon {
  const counters = { terminalClients: 0, portConnections: 0, doorConnections: 0 };
  return {
    config,
    environment,
    counters,
    startedAtMs: Date.now(),
    trim: new IdleTrim(() => true),
    userFiles: null,
    get processes(): never {
      throw new ApiError(500, "The helper for files runs no commands.");
    },
    activity: () => ({ ...counters, processesRunning: 0, keepAlive: 0, awake: 0 }),
  };
}

const TOOLS = [...FILE_TOOLS, ...CODEGEN_TOOLS];

async function callTool(call: Call): Promise<void> {
  const { name, args } = (await readJson(call)) as { name?: string; args?: Record<string, unknown> };
  const tool = TOOLS.find((each) => each.name === name);
  if (!tool) throw new ApiError(404, `There is no tool ${name}.`);
  sendJson(call.res, 200, await tool.run(call.daemon, args ?? {}, call.signal));
}
