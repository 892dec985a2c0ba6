/** A second authorization server, as somebody's company runs one: everybody who comes is signed in as `who.next`. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider, { type Context } from "oidc-provider";

export interface OtherPerson {
  sub: string;
  email?: string;
  email_verified?: boolean;
  given_name?: string;
  groups?: string[];
}

export interface OtherProvider extends AsyncDisposable {
  issuer: string;
  who: { next: OtherPerson };
  /** Opens for a client that is to be sent back to these addresses. */
  open(redirectUris: string[]): void;
  /** Answers instead of the server while it is set; true when it has. */
  lie: ((request: IncomingMessage, response: ServerResponse) => boolean) | null;
}

export const CLIENT = { id: "berth", secret: "a-secret-between-two-servers" };

export async function startOtherProvider(): Promise<OtherProvider> {
  let handle: Handle = () => {};
  const server = createServer((request, response) => {
    if (!other.lie?.(request, response)) handle(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const other: OtherProvider = {
    issuer,
    who: { next: { sub: "nobody" } },
    lie: null,
    open(redirectUris) {
      handle = serverFor(issuer, redirectUris, other.who);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return other;
}

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

const TTL_SECONDS = 600;

function serverFor(issuer: string, redirectUris: string[], who: OtherProvider["who"]): Handle {
  const people = new Map<string, OtherPerson>();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: redirectUris,
        id_token_signed_response_alg: "ES256",
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: "other", alg: "ES256", use: "sig" }] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["given_name", "groups"] },
    cookies: { keys: ["test"] },
    ttl: Object.fromEntries(
      ["AccessToken", "AuthorizationCode", "Grant", "IdToken", "Interaction", "Session"].map((model) => [
        model,
        TTL_SECONDS,
      ]),
    ),
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context: Context, { uid }: { uid: string }) => `/step/${uid}` },
    findAccount: (_context: Context, sub: string) => ({ accountId: sub, claims: () => ({ ...people.get(sub) }) }),
    loadExistingGrant: async ({ oidc }: Context) => {
      const grant = new provider.Grant({
        accountId: (oidc as unknown as { session: { accountId: string } }).session.accountId,
        clientId: CLIENT.id,
      });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
  });
  const serve = provider.callback();
  return (request, response) => {
    if (!request.url?.startsWith("/step/")) return serve(request, response);
    people.set(who.next.sub, who.next);
    return provider.interactionFinished(request, response, { login: { accountId: who.next.sub } });
  };
}
