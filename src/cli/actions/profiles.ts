/** The servers that the user has logged in to: list, choose, forget. */
import { readCredentials } from "../../lib/credentials.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { dataFolder } from "../connection.ts";
import { changeProfiles, LOCAL_PROFILE, noProfile, type Profile, readProfiles } from "../profiles.ts";
import { logout } from "./session.ts";
import { print } from "./show.ts";

export async function listProfiles(call: Invocation): Promise<undefined> {
  const dataDir = dataFolder(call.context.env);
  const local = readCredentials(dataDir);
  const { current, profiles } = readProfiles(dataDir);
  const here: Record<string, Profile> = local ? { [LOCAL_PROFILE]: { ...local, ...profiles[LOCAL_PROFILE] } } : {};
  const rows = Object.entries({ ...profiles, ...here })
    .filter(([, { url }]) => url !== undefined)
    .map(([name, { url, workspace, tokens }]) => ({
      name,
      current: name === current ? "*" : "",
      url,
      workspace,
      signedInWith: tokens ? "browser" : "API key",
    }));
  return print(call, null, "table", rows);
}

export async function useProfile(call: Invocation): Promise<undefined> {
  const name = text(call.args[0]) ?? "";
  const dataDir = dataFolder(call.context.env);
  const url = await changeProfiles(dataDir, async (known) => {
    const chosen = name === LOCAL_PROFILE ? readCredentials(dataDir) : known.profiles[name];
    if (!chosen?.url) throw noProfile(name, dataDir);
    return { profiles: { ...known, current: name }, result: chosen.url };
  });
  call.context.note(`now using profile '${name}', ${url}`);
}

export async function removeProfile(call: Invocation): Promise<undefined> {
  const name = text(call.args[0]) ?? "";
  const dataDir = dataFolder(call.context.env);
  if (name === LOCAL_PROFILE)
    throw new UsageError(`'${LOCAL_PROFILE}' is the server on this machine; its key stays with the server.`);
  if (!readProfiles(dataDir).profiles[name]) throw noProfile(name, dataDir);
  return logout({ ...call, options: { ...call.options, profile: name } });
}
