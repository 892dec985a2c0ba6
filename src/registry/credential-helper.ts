/**
 * Docker's credential helpers: programs called `docker-credential-NAME` that the operator's Docker configuration names.
 * Only that file names helpers; a configuration that a tenant sends does not start programs.
 */
import { execFile } from "node:child_process";
import { z } from "zod";
import { DOCKER_HUB } from "../contract/image-reference.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import type { Credentials } from "./credentials.ts";

const NAME = /^[\w.-]{1,64}$/;
const WAIT_MS = 10 * SECOND_MS;
const ANSWER_BYTES_MAX = 64 * 1024;
/** How Docker calls its own registry in these programs. */
const HUB_ADDRESS = "https://index.docker.io/v1/";
/** The user name of a secret that is a refresh token. */
const TOKEN_USER = "<token>";

const answerShape = z.object({ Username: z.string(), Secret: z.string() });

/** Questions that are being answered: pulls of one moment ask a helper once. */
const asking = new Map<string, Promise<Credentials | null>>();

/** Null when the helper knows no credentials for the registry. */
export function askHelper(helper: string, registry: string): Promise<Credentials | null> {
  const key = `${helper} ${registry}`;
  const asked = asking.get(key) ?? ask(helper, registry).finally(() => asking.delete(key));
  asking.set(key, asked);
  return asked;
}

async function ask(helper: string, registry: string): Promise<Credentials | null> {
  if (!NAME.test(helper)) throw new Error(`${JSON.stringify(helper)} is not the name of a credential helper`);
  const program = `docker-credential-${helper}`;
  const text = await new Promise<string | null>((resolve, reject) => {
    const options = { timeout: WAIT_MS, maxBuffer: ANSWER_BYTES_MAX };
    const child = execFile(program, ["get"], options, (error, stdout) => {
      if (!error) resolve(stdout);
      // The words of Docker's own helpers for a registry that they do not know.
      else if (/credentials not found/i.test(stdout)) resolve(null);
      // Its output, and the error's own message with it, may hold a secret.
      else reject(new Error(`${program} get failed: ${error.killed ? `no answer in ${WAIT_MS} ms` : error.code}`));
    });
    child.stdin?.on("error", () => {}); // the program ended without reading; its exit tells
    child.stdin?.end(registry === DOCKER_HUB ? HUB_ADDRESS : registry);
  });
  return text === null ? null : credentialsOf(program, text);
}

function credentialsOf(program: string, text: string): Credentials {
  try {
    const { Username: username, Secret: password } = answerShape.parse(JSON.parse(text));
    return username === TOKEN_USER ? { username: "", password: "", identityToken: password } : { username, password };
  } catch {
    throw new Error(`${program} get answers something else than {"Username", "Secret"}`);
  }
}
