/**
 * Answers a registry's challenge (`WWW-Authenticate`): Basic with the credentials themselves, Bearer with a token from
 * the server that the challenge names. The token server's address is judged like any other.
 */
import { z } from "zod";
import type { Credentials } from "./credentials.ts";
import { broken, RegistryProblem } from "./problem.ts";
import { discard, readJson, type Transport } from "./transport.ts";

export interface Asked {
  transport: Transport;
  credentials: Credentials | null;
  /** `repository:acme/tool:pull`. */
  scope: string;
  /** Whether the registry itself is spoken to without TLS; only then its token server may be, too. */
  plain: boolean;
  signal: AbortSignal;
}

const ANSWER_BYTES_MAX = 256 * 1024;
const CLIENT_ID = "berth";

const answerShape = z.object({ token: z.string().optional(), access_token: z.string().optional() });

/** The value of the `Authorization` header; null when the registry offers no way that these credentials allow. */
export async function answerChallenge(challenge: string, asked: Asked): Promise<string | null> {
  const bearer = parametersOf(challenge, "bearer");
  if (bearer?.realm) return `Bearer ${await fetchToken(bearer.realm, bearer.service, asked)}`;
  if (asked.credentials && parametersOf(challenge, "basic")) return basic(asked.credentials);
  return null;
}

export const basic = ({ username, password }: Credentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

async function fetchToken(realm: string, service: string | undefined, asked: Asked): Promise<string> {
  const { transport, credentials, scope, plain, signal } = asked;
  const url = URL.canParse(realm) ? new URL(realm) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "") throw broken("its token server has no address");
  if (url.protocol === "http:" && !plain)
    throw new RegistryProblem("refused", `its token server ${url.host} is not reached by https`);
  const values = { ...(service === undefined ? {} : { service }), scope };
  const token = credentials?.identityToken;
  if (token === undefined) for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  const form = { grant_type: "refresh_token", client_id: CLIENT_ID, refresh_token: token ?? "", ...values };
  const received = await transport.send(url, {
    ...(token === undefined
      ? { method: "GET", headers: credentials ? { authorization: basic(credentials) } : {} }
      : {
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams(form).toString(),
        }),
    signal,
  });
  const { status } = received;
  if (status !== 200) discard(received);
  if (status >= 500 || status === 429)
    throw new RegistryProblem("unreachable", `the token server ${url.host} answers ${status}`);
  if (status !== 200)
    throw new RegistryProblem(
      "unauthorized",
      `the token server ${url.host} refuses ${credentials ? "the credentials" : "access without credentials"} (${status})`,
    );
  const what = `the answer of the token server ${url.host}`;
  const { data } = answerShape.safeParse(await readJson(received, ANSWER_BYTES_MAX, what));
  const given = data?.token || data?.access_token;
  if (!given || /[^\x21-\x7e]/.test(given)) throw broken(`${what} holds no token`);
  return given;
}

/** The parameters of one scheme among the challenges of a header; null when it is not offered. */
function parametersOf(challenge: string, scheme: string): Record<string, string> | null {
  const at = new RegExp(`(?:^|,\\s*)${scheme}\\b`, "i").exec(challenge);
  if (!at) return null;
  const rest = challenge.slice(at.index + at[0].length);
  const parameters: Record<string, string> = {};
  const parameter = /\s*,?\s*(\w+)=(?:"([^"]*)"|([^\s,"]+))/y;
  for (let found = parameter.exec(rest); found; found = parameter.exec(rest))
    parameters[(found[1] ?? "").toLowerCase()] = found[2] ?? found[3] ?? "";
  return parameters;
}
