/**
 * What the command line has stored: servers that the user has logged in to (`profiles.json`), and the server on this
 * machine (`credentials.json`). A refresh token works once, so renewing takes the lock that the command line takes, and
 * writes the new one back.
 */
import { BerthError } from "../core/errors.ts";
import { pause } from "../core/wait.ts";
import { type Credential, keyCredential, renewedCredential, type Token } from "./credential.ts";
import { type Files, filesHere, variable } from "./machine.ts";
import { requestToken } from "./oauth.ts";

const LOCAL_PROFILE = "local";
const CLIENT_ID = "berth";
/** An older lock was left by a killed command; none holds it longer than one request. */
const LOCK_AGE_MAX_MS = 60_000;
const LOCK_LOOK_MS = 50;
const RENEW_BEFORE_MS = 5 * 60_000;

interface Tokens {
  accessToken: string;
  refreshToken: string;
  expiresAt: number;
}

interface Profile {
  url?: string;
  apiKey?: string;
  tokens?: Tokens;
  workspace?: string;
}

interface Profiles {
  current?: string;
  profiles?: Record<string, Profile>;
}

export interface Stored {
  url: string;
  workspace: string | undefined;
  credential: Credential | null;
}

/** Null when nobody has logged in, and in browsers. */
export async function storedConnection(fetch: typeof globalThis.fetch): Promise<Stored | null> {
  const files = await filesHere();
  const folder = dataFolder();
  if (!files || folder === null) return null;
  const { current = LOCAL_PROFILE, profiles = {} } = await readJson<Profiles>(files, `${folder}/profiles.json`);
  const name = variable("BERTH_PROFILE") ?? current;
  const local = name === LOCAL_PROFILE ? await readJson<Profile>(files, `${folder}/credentials.json`) : {};
  const profile: Profile = { ...local, ...profiles[name] };
  if (!profile.url) {
    if (name === LOCAL_PROFILE) return null;
    throw new BerthError({ code: "no_profile", message: `There is no profile '${name}'.` });
  }
  const url = profile.url.replace(/\/+$/, "").replace(/\/v0$/, "");
  return { url, workspace: profile.workspace, credential: credentialOf(profile, name, url, folder, files, fetch) };
}

function credentialOf(
  { apiKey, tokens }: Profile,
  name: string,
  url: string,
  folder: string,
  files: Files,
  fetch: typeof globalThis.fetch,
): Credential | null {
  if (tokens) return renewedCredential(() => renew(name, url, folder, files, fetch));
  return apiKey ? keyCredential(apiKey) : null;
}

async function renew(
  name: string,
  url: string,
  folder: string,
  files: Files,
  fetch: typeof globalThis.fetch,
): Promise<Token> {
  const file = `${folder}/profiles.json`;
  return locked(`${file}.lock`, files, async () => {
    const { current = LOCAL_PROFILE, profiles = {} } = await readJson<Profiles>(files, file);
    const profile = profiles[name];
    if (!profile?.tokens) throw signedOut(url);
    if (Date.now() < profile.tokens.expiresAt - RENEW_BEFORE_MS) return tokenOf(profile.tokens);
    const grant = { client_id: CLIENT_ID, grant_type: "refresh_token", refresh_token: profile.tokens.refreshToken };
    const granted = await requestToken(url, grant, { fetch }).catch((error: unknown) => {
      throw error instanceof BerthError && error.code === "invalid_grant" ? signedOut(url) : error;
    });
    const tokens: Tokens = {
      accessToken: granted.text,
      refreshToken: granted.refreshToken ?? profile.tokens.refreshToken,
      expiresAt: granted.expiresAtMs,
    };
    const next = { current, profiles: { ...profiles, [name]: { ...profile, tokens } } };
    await files.replace(file, `${JSON.stringify(next, null, 2)}\n`);
    return granted;
  });
}

const signedOut = (url: string): BerthError =>
  new BerthError({ code: "signed_out", message: `The sign-in to ${url} has ended.` });

const tokenOf = ({ accessToken, expiresAt }: Tokens): Token => ({
  text: accessToken,
  expiresAtMs: expiresAt,
  issuedAtMs: Date.now(),
});

async function locked<Result>(lock: string, files: Files, work: () => Promise<Result>): Promise<Result> {
  while (!(await files.lock(lock))) {
    if ((await files.ageMs(lock)) > LOCK_AGE_MAX_MS) await files.remove(lock);
    else await pause(LOCK_LOOK_MS);
  }
  try {
    return await work();
  } finally {
    await files.remove(lock);
  }
}

function dataFolder(): string | null {
  const home = variable("HOME") ?? variable("USERPROFILE");
  const folder = variable("BERTH_DATA") ?? (home === undefined ? undefined : `${home}/.berth`);
  return folder?.replace(/^~(?=$|\/)/, home ?? "~") ?? null;
}

async function readJson<Value>(files: Files, path: string): Promise<Partial<Value>> {
  const text = await files.read(path);
  if (text === null) return {};
  try {
    return JSON.parse(text) as Partial<Value>;
  } catch (error) {
    throw new BerthError({ code: "unreadable_file", message: `${path} is not JSON.`, cause: error });
  }
}
