/** Which server and workspace the commands talk to, remembered between calls. */
import { ApiError } from "../../client/api-error.ts";
import { createClient, normalizeUrl } from "../../client/client.ts";
import type { Operation } from "../../contract/operation.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { dataFolder, resolveConnection } from "../connection.ts";
import { memberAt } from "../json-path.ts";
import { LOCAL_PROFILE, profilesFile, readProfiles, writeProfiles } from "../profiles.ts";
import { nameOf } from "../table.ts";
import { connect } from "./call-input.ts";
import { print } from "./show.ts";

export async function login(workspaceList: Operation, call: Invocation): Promise<undefined> {
  const { context, options } = call;
  const url = normalizeUrl(
    text(call.args[0]) ?? text(options.url) ?? context.env.BERTH_URL ?? context.env.BL_API_URL ?? "",
  );
  if (!/^https?:\/\//.test(url)) throw new UsageError("which server?", "berth login http://host:port");
  const name = text(options.profile) ?? new URL(url).host;
  if (name === LOCAL_PROFILE)
    throw new UsageError(`'${LOCAL_PROFILE}' is the server on this machine; choose another name.`);
  const apiKey = await keyFor(url, call);
  const workspaces = await namesOf(createClient({ url, apiKey }).items(workspaceList));
  const workspace = text(options.workspace) ?? (workspaces.length === 1 ? workspaces[0] : undefined);
  if (workspace !== undefined && !workspaces.includes(workspace)) throw noWorkspace(workspace, workspaces);
  const dataDir = dataFolder(context.env);
  const known = readProfiles(dataDir);
  writeProfiles(dataDir, {
    current: name,
    profiles: { ...known.profiles, [name]: { url, apiKey, ...(workspace ? { workspace } : {}) } },
  });
  context.note(
    `logged in to ${url}${workspace ? `, workspace ${workspace}` : ""} (profile '${name}' in ${profilesFile(dataDir)})`,
  );
  if (!workspace) context.note(`  next: choose a workspace with \`berth workspaces NAME\`: ${workspaces.join(", ")}`);
}

/** Never from the command line: it would stay in the shell's history and be seen in the list of processes. */
async function keyFor(url: string, { context }: Invocation): Promise<string> {
  const key = context.env.BERTH_API_KEY || context.env.BL_API_KEY || (await context.askSecret(`API key for ${url}: `));
  const trimmed = key?.trim() ?? "";
  if (/^\S+$/.test(trimmed)) return trimmed;
  throw new UsageError("no API key was given.", "type it when asked, pipe it in, or set BERTH_API_KEY");
}

export async function logout({ context, options }: Invocation): Promise<undefined> {
  const dataDir = dataFolder(context.env);
  const { current, profiles } = readProfiles(dataDir);
  const name = text(options.profile) ?? context.env.BERTH_PROFILE ?? current;
  if (!Object.hasOwn(profiles, name) || name === LOCAL_PROFILE) {
    context.note("not logged in anywhere; the key of the server on this machine stays with the server");
    return;
  }
  const { [name]: _removed, ...rest } = profiles;
  writeProfiles(dataDir, { current: current === name ? LOCAL_PROFILE : current, profiles: rest });
  context.note(
    `logged out: profile '${name}' is gone. The key itself is still valid; delete it on the server if it should not be.`,
  );
}

export async function token({ context, options }: Invocation): Promise<undefined> {
  const connection = { url: text(options.url), workspace: undefined, profile: text(options.profile) };
  context.print(resolveConnection(connection, context.env).apiKey);
}

export async function workspaces(workspaceList: Operation, call: Invocation): Promise<undefined> {
  const { context, options } = call;
  const chosen = text(call.args[0]);
  const rows: unknown[] = [];
  for await (const row of connect(call).items(workspaceList)) rows.push(row);
  if (chosen === undefined) {
    const connection = { url: text(options.url), workspace: text(options.workspace), profile: text(options.profile) };
    const current = resolveConnection(connection, context.env).workspace;
    const marked = rows.map((row) => ({
      name: nameOf(row),
      current: nameOf(row) === current ? "*" : "",
      displayName: memberAt(row, "displayName"),
      region: memberAt(row, "region"),
      status: memberAt(row, "status"),
      createdAt: memberAt(row, "createdAt"),
    }));
    return print(call, null, "table", options.output === undefined ? marked : rows);
  }
  const names = rows.map(nameOf);
  if (!names.includes(chosen)) throw noWorkspace(chosen, names);
  const dataDir = dataFolder(context.env);
  const { current, profiles } = readProfiles(dataDir);
  const name = text(options.profile) ?? context.env.BERTH_PROFILE ?? current;
  writeProfiles(dataDir, { current, profiles: { ...profiles, [name]: { ...profiles[name], workspace: chosen } } });
  context.note(`now working in ${chosen}`);
}

const namesOf = async (items: AsyncIterable<unknown>): Promise<string[]> => {
  const names: string[] = [];
  for await (const item of items) names.push(nameOf(item));
  return names;
};

const noWorkspace = (name: string, known: readonly string[]): ApiError =>
  new ApiError({
    status: 404,
    code: "not_found",
    message: `There is no workspace '${name}' here; these credentials can use: ${known.join(", ") || "none"}.`,
  });
