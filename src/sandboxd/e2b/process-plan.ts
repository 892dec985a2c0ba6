/** What an E2B client wants to run, checked: the program, its user, its folder and its variables. */
import { existsSync } from "node:fs";
import type { SandboxUser } from "../../contract/sandbox-wire.ts";
import { pathFromBody, toText } from "../files/byte-path.ts";
import { ApiError } from "../http/api-error.ts";
import { envOf } from "../process/exec.ts";
import { checkFolder } from "../process/managed-process.ts";
import { messageOf, type Rpc, textOf } from "./connect.ts";
import { userOfCredentials } from "./named-user.ts";

/** E2B's clients always ask for this shell; images without it have another. */
const BASH = "/bin/bash";
const SH = "/bin/sh";

export interface ProcessPlan {
  argv: string[];
  user: SandboxUser | undefined;
  workingDir: string;
  env: Record<string, string>;
  /** A name that the client gives the process; "" for none. */
  tag: string;
}

export function planOf({ call, message }: Rpc): ProcessPlan {
  const config = messageOf(message, "process");
  const asked = textOf(config, "cmd");
  if (asked === "") throw new ApiError(400, '"process.cmd" is required.');
  const args = config.args ?? [];
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === "string"))
    throw new ApiError(400, '"process.args" must be a list of texts.');
  const { user, env, base } = userOfCredentials(call);
  const cwd = textOf(config, "cwd");
  const workingDir = cwd === "" ? base.workDir : toText(pathFromBody(cwd, base));
  checkFolder(workingDir);
  return {
    argv: [asked === BASH && !existsSync(BASH) ? SH : asked, ...args],
    user,
    workingDir,
    env: { ...env, ...envOf(config.envs) },
    tag: textOf(message, "tag"),
  };
}
