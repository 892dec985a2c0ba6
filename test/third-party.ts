/**
 * A third party on loopback: an identity provider whose users agree to everything, and an API that knows whose token it
 * is given. It stands in for the services that integrations connect to, and speaks their protocols.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";
import { closeAtEnd } from "./closing.ts";

export const CLIENT = { id: "customer-app", secret: "customer-secret-0123456789" };
const SCOPE = "openid files";

export interface ThirdParty extends AsyncDisposable {
  issuer: string;
  apiUrl: string;
  tokenUrl: string;
  authorizeUrl: string;
  /** Refresh tokens exchanged so far. */
  refreshes(): number;
  /** Authorization headers that the API has seen. */
  seen: string[];
  /** Access tokens that the API refuses from now on. */
  refused: Set<string>;
  /** Whoever signs in next. */
  user: string;
}

export async function startThirdParty(redirectUri: string): Promise<ThirdParty> {
  const listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const closed = closeAtEnd(() => close(listener));
  const issuer = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const provider = makeProvider(issuer, redirectUri);
  let refreshes = 0;
  provider.on("grant.success", (context) => {
    const { oidc } = context as { oidc: { params?: { grant_type?: string } } };
    if (oidc.params?.grant_type === "refresh_token") refreshes += 1;
  });
  const seen: string[] = [];
  const party: ThirdParty = {
    issuer,
    apiUrl: `${issuer}/api`,
    tokenUrl: `${issuer}/token`,
    authorizeUrl: `${issuer}/auth`,
    refreshes: () => refreshes,
    seen,
    refused: new Set(),
    user: "nobody",
    async [Symbol.asyncDispose]() {
      closed();
      await close(listener);
    },
  };
  listener.on("request", async (req: IncomingMessage, res: ServerResponse) => {
    if (req.url?.startsWith("/api/")) await answerApi(party, req, res);
    else if (req.url?.startsWith("/interaction/")) await agree(provider, party.user, req, res);
    else await provider.callback()(req, res);
  });
  return party;
}

function makeProvider(issuer: string, redirectUri: string): Provider {
  return new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    scopes: SCOPE.split(" "),
    pkce: { required: () => false },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    cookies: { keys: ["test"] },
    features: { devInteractions: { enabled: false } },
  });
}

/** The page on which a person would sign in and agree. */
async function agree(provider: Provider, accountId: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { params } = await provider.interactionDetails(req, res);
  const grant = new provider.Grant({ accountId, clientId: params.client_id ?? "" });
  grant.addOIDCScope(SCOPE);
  await provider.interactionFinished(req, res, { login: { accountId }, consent: { grantId: await grant.save() } });
}

async function answerApi(party: ThirdParty, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const authorization = req.headers.authorization ?? "";
  party.seen.push(authorization);
  const refused = party.refused.has(authorization.replace(/^Bearer /, ""));
  const asked = refused ? null : await fetch(`${party.issuer}/me`, { headers: { authorization } });
  const send = (status: number, body: unknown): void => {
    res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  if (!asked?.ok) return send(401, { error: "who are you?", sent: authorization });
  const { sub } = (await asked.json()) as { sub: string };
  const url = new URL(req.url ?? "/", party.issuer);
  // Repeating what it was sent is unkind, and happens.
  if (url.pathname === "/api/files")
    return send(200, { files: [{ id: "1", name: `report of ${sub}` }], q: url.searchParams.get("q"), authorization });
  send(404, { error: `there is no ${url.pathname}` });
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}
