/** The user that an E2B client names for a command or a file. */
import { statSync } from "node:fs";
import type { SandboxUser } from "../../contract/sandbox-wire.ts";
import { userByName } from "../files/accounts.ts";
import type { PathBase } from "../files/byte-path.ts";
import { ApiError } from "../http/api-error.ts";
import type { Call } from "../http/call.ts";
import type { Environment } from "../process/environment.ts";

export interface NamedUser {
  /** Undefined: the daemon's own. */
  user: SandboxUser | undefined;
  /** Variables of a user other than the sandbox's own. */
  env: Record<string, string>;
  base: PathBase;
}

/** Where users begin whose home does not exist, such as `nobody`. */
const ROOT = "/";
const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Basic credentials without a password name the user of an RPC. */
export function userOfCredentials({ req, daemon }: Call): NamedUser {
  const encoded = /^basic +(\S+)$/i.exec(req.headers.authorization ?? "")?.[1];
  const name = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString("utf8").split(":", 1)[0];
  return namedUser(daemon.environment, name ?? "");
}

/** Without a name: the sandbox's own user, in its working directory. A named user begins in their home directory. */
export function namedUser(environment: Environment, name: string): NamedUser {
  const { user } = environment;
  const own: NamedUser = { user, env: {}, base: environment.pathBase };
  if (name === "") return own;
  const account = userByName(name);
  if (!account) throw new ApiError(401, `There is no user "${name}" in this sandbox.`);
  if (account.uid === (user?.uid ?? process.getuid?.())) return own;
  if (environment.filesUser || process.getuid?.() !== 0)
    throw new ApiError(403, `This sandbox runs as one user and cannot change to "${name}".`);
  const { uid, gid, home } = account;
  return {
    user: { uid, gid, home },
    env: { HOME: home, USER: name, LOGNAME: name },
    base: { workDir: isFolder(home) ? home : ROOT, home },
  };
}
