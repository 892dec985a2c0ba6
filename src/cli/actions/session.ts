/** Which server and workspace the commands talk to, remembered between calls. */
import { ApiError } from "../../client/api-error.ts";
import { createClient, normalizeUrl } from "../../client/client.ts";
import type { Operation } from "../../contract/operation.ts";
import { type Credentials, credentialsFile, readCredentials } from "../../lib/credentials.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { dataFolder, resolveConnection } from "../connection.ts";
import { memberAt } from "../json-path.ts";
import { changeProfiles, LOCAL_PROFILE, profilesFile, type Tokens } from "../profiles.ts";
import { nameOf } from "../table.ts";
import { deviceSignIn, revoke } from "../tokens.ts";
import { connect } from "./call-input.ts";
import { print } from "./show.ts";

export async function login(workspaceList: Operation, call: Invocation): Promise<undefined> {
  const { context, options } = call;
  const dataDir = dataFolder(context.env);
  const local = readCredentials(dataDir);
  const given = normalizeUrl(
    text(call.args[0]) ?? text(options.url) ?? context.env.BERTH_URL ?? context.env.BL_API_URL ?? "",
  );
  const isLocal = local !== null && (given === "" || given === normalizeUrl(local.url));
  const brought = await broughtKey(call);
  const takesLocalKey = isLocal && !options.browser && (brought === null || brought === local.apiKey);
  // With a profile name, the server on this machine becomes a profile like any other.
  const isNamed = (text(options.profile) ?? LOCAL_PROFILE) !== LOCAL_PROFILE;
  if (takesLocalKey && !isNamed) return useLocal(dataDir, local, call);
  const url = isLocal ? normalizeUrl(local.url) : given;
  if (!/^https?:\/\//.test(url)) throw new UsageError("which server?", "berth login http://host:port");
  const name = text(options.profile) ?? new URL(url).host;
  if (name === LOCAL_PROFILE)
    throw new UsageError(`'${LOCAL_PROFILE}' is the server on this machine; choose another name.`);
  const key = takesLocalKey ? (local.apiKey ?? null) : brought;
  const credentials = await credentialsFor(url, key, call);
  const apiKey = "tokens" in credentials ? credentials.tokens.accessToken : credentials.apiKey;
  const workspaces = await namesOf(createClient({ url, apiKey }).items(workspaceList));
  const workspace = text(options.workspace) ?? (workspaces.length === 1 ? workspaces[0] : undefined);
  if (workspace !== undefined && !workspaces.includes(workspace)) throw noWorkspace(workspace, workspaces);
  const isUsed = await changeProfiles(dataDir, async ({ current, profiles }) => {
    // A login under a name of its own does not change the server in use.
    const isFree = current === LOCAL_PROFILE && local === null;
    const used = isFree || current === name || text(options.profile) === undefined;
    const kept = { ...profiles, [name]: { url, ...credentials, ...(workspace ? { workspace } : {}) } };
    return { profiles: { current: used ? name : current, profiles: kept }, result: used };
  });
  context.note(
    `logged in to ${url}${workspace ? `, workspace ${workspace}` : ""} (profile '${name}' in ${profilesFile(dataDir)})`,
  );
  if (!isUsed) context.note(`  next: \`berth profiles use ${name}\`, or add --profile ${name} to a command`);
  if (!workspace) context.note(`  next: choose a workspace with \`berth workspaces NAME\`: ${workspaces.join(", ")}`);
}

/** Uses the credentials file that the server on this machine wrote; being able to read it is enough. */
async function useLocal(dataDir: string, { url }: Credentials, { context }: Invocation): Promise<undefined> {
  await changeProfiles(dataDir, async (known) => ({
    profiles: { ...known, current: LOCAL_PROFILE },
    result: undefined,
  }));
  context.note(`using the server on this machine, ${url}, with the key in ${credentialsFile(dataDir)}`);
}

/**
 * The key from the environment or typed after --key; null when there is none. Never an argument: it would stay in the
 * shell's history and appear in the process list.
 */
async function broughtKey({ context, options }: Invocation): Promise<string | null> {
  const isAsked = context.canAsk ? options.key === true : options.browser !== true;
  const typed = isAsked ? () => context.askSecret("API key: ") : () => null;
  return (context.env.BERTH_API_KEY || context.env.BL_API_KEY || (await typed()))?.trim() || null;
}

/** A user at a terminal signs in with a browser; a script supplies a key. */
async function credentialsFor(
  url: string,
  brought: string | null,
  { context, options }: Invocation,
): Promise<{ apiKey: string } | { tokens: Tokens }> {
  if (brought === null && (options.browser === true || context.canAsk)) {
    const tokens = await deviceSignIn(url, ({ verification_uri, verification_uri_complete, user_code }) => {
      context.note(`open ${verification_uri_complete ?? verification_uri} in a browser`);
      context.note(`and check that it shows the code ${user_code}; waiting…`);
    });
    return { tokens };
  }
  if (brought !== null && /^\S+$/.test(brought)) return { apiKey: brought };
  throw new UsageError("no API key was given.", "type it when asked, pipe it in, set BERTH_API_KEY, or use --browser");
}

export async function logout({ context, options }: Invocation): Promise<undefined> {
  const dataDir = dataFolder(context.env);
  const gone = await changeProfiles(dataDir, async ({ current, profiles }) => {
    const name = text(options.profile) ?? context.env.BERTH_PROFILE ?? current;
    const { [name]: removed, ...rest } = profiles;
    if (!removed || name === LOCAL_PROFILE) return { result: null };
    return {
      profiles: { current: current === name ? LOCAL_PROFILE : current, profiles: rest },
      result: { ...removed, name },
    };
  });
  if (!gone) {
    context.note("not logged in anywhere; the key of the server on this machine stays with the server");
    return;
  }
  const { name, url, tokens } = gone;
  const isOver = tokens !== undefined && url !== undefined && (await revoke(url, tokens));
  const remains = tokens
    ? "The server could not be told; end the session there with `berth session delete`."
    : "The key itself is still valid; delete it on the server if it should not be.";
  context.note(`logged out: profile '${name}' is gone. ${isOver ? "Its session on the server is, too." : remains}`);
}

export async function token({ context, options }: Invocation): Promise<undefined> {
  const connection = { url: text(options.url), workspace: undefined, profile: text(options.profile) };
  context.print(await resolveConnection(connection, context.env).bearer());
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
  await changeProfiles(dataDir, async ({ current, profiles }) => {
    const name = text(options.profile) ?? context.env.BERTH_PROFILE ?? current;
    return {
      profiles: { current, profiles: { ...profiles, [name]: { ...profiles[name], workspace: chosen } } },
      result: undefined,
    };
  });
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
