/** The last phase: the port, and the management API behind it. */

import { join } from "node:path";
import { addConsoleRoutes } from "../api/console/console-routes.ts";
import { createDirectCall } from "../api/direct-call.ts";
import { EventStreams } from "../api/event-streams.ts";
import { addOauthRoutes } from "../api/oauth-routes.ts";
import { addPlatformRoutes } from "../api/platform-routes.ts";
import { addRegistryDoor } from "../api/registry/door.ts";
import { createRequestLog } from "../api/request-log.ts";
import { resourceHandlers } from "../api/resource-handlers.ts";
import { createApi } from "../api/server.ts";
import { addUploadRoute } from "../api/upload-route.ts";
import { createIdentityProvider } from "../auth/external/identity-provider.ts";
import { createClientDocuments } from "../auth/oauth/client-document.ts";
import { previewOrigins, sharedWithWorkloads } from "../contract/console.ts";
import type { DirectCall } from "../contract/direct-call.ts";
import { createEdge, type Edge } from "../http/edge.ts";
import { UnreadAnswers } from "../http/unread-answers.ts";
import { BEHAVIOURS, HANDLERS } from "../kinds/behaviour.ts";
import { httpAnswer, tlsAnswer } from "../kinds/custom-domain/challenges.ts";
import { createDriveTokenCheck } from "../kinds/drive/token-check.ts";
import { OPERATIONS } from "../kinds/index.ts";
import type { Platform } from "../kinds/port.ts";
import { MEMBER_SCOPES, SCOPES } from "../kinds/scopes.ts";
import { FailedTries } from "../lib/failed-tries.ts";
import { createOutbound } from "../lib/network/outbound-http.ts";
import { proxiesOf } from "../lib/schemas/tls-settings.ts";
import type { Foundation } from "./foundation.ts";
import { hostsOf, type Identity } from "./identity.ts";
import type { Inference } from "./inference.ts";
import type { StartedPeers } from "./peers.ts";
import type { S3Door } from "./s3.ts";
import { privateAddressesOf } from "./settings.ts";
import type { Start } from "./start.ts";

/** The port is the last thing on the stack: it closes before anything that a request in flight may need. */
export async function startManagement(
  { config, clock, stack }: Start,
  { registry }: Foundation,
  identity: Identity,
  platform: Platform,
  { gateway, edges, isCustomDomain, contextOf }: Inference,
  peers: StartedPeers | null,
  s3: S3Door | null,
): Promise<{ edge: Edge; directCall: DirectCall }> {
  const { authenticator, verifyToken, issuer, pagesUrl, consoleBase, isRunning, makerOf } = identity;
  const edge = stack.add(
    createEdge({
      config,
      gateway,
      parked: edges !== null,
      clock,
      names: hostsOf(identity),
      peer: peers?.door,
      s3: s3?.serve,
      contextOf,
      challengeAnswer: (token) => httpAnswer(token, platform),
      challengeCredential: (host) => tlsAnswer(host, platform),
    }),
  );
  // Above the edge on the stack: open streams end first, and the edge then has nothing to wait for.
  const streams = stack.add(new EventStreams({ onIdentityChange: platform.store.onIdentityChange }));
  const implementations = [
    ...BEHAVIOURS.flatMap((behaviour) => [...resourceHandlers(behaviour), ...(behaviour.handlers ?? [])]),
    ...HANDLERS,
  ];
  const pipeline = {
    ...{ deps: platform, authenticator, implementations },
    unread: new UnreadAnswers(),
    requestLog: createRequestLog(registry, platform.log),
    proxies: proxiesOf(config),
    ...(edges && { settled: edges.settled }),
  };
  const directCall = createDirectCall(pipeline);
  const api = createApi({
    ...{ ...pipeline, registry, streams },
    serverFactory: edge.serve,
    // A certificate of the server's own authority is not known to every browser, which could then not go on.
    strictTransport: () => config.tls_cert !== undefined || contextOf(new URL(issuer()).hostname) !== undefined,
    ...(peers && { handOn: gateway.handOn }),
  });
  addPlatformRoutes(api, {
    ...{ deps: platform, operations: OPERATIONS, registry, authenticator, pagesUrl },
    ...(edges && { edgeShortage: edges.shortage }),
  });
  addConsoleRoutes(api, {
    settings: () => ({
      pagesUrl: pagesUrl(),
      publicUrl: issuer(),
      base: sharedWithWorkloads(consoleBase()) === "origin" ? "/console" : "",
      brand: config.brand,
      version: platform.settings.version,
      frames: previewOrigins(consoleBase()),
    }),
    cacheFolder: join(config.data, "cache"),
    log: platform.log,
  });
  const privateAddresses = privateAddressesOf(config);
  const toProviders = { clock, outbound: stack.add(createOutbound({ privateAddresses: true })) };
  addOauthRoutes(api, {
    ...platform,
    ...{ authenticator, verifyToken, issuer, pagesUrl, isRunning },
    cookiesAreOwn: () => pagesUrl().startsWith("https:") || sharedWithWorkloads(consoleBase()) === null,
    scopes: SCOPES,
    documents: createClientDocuments({
      ...{ store: platform.store, log: platform.log, clock, scopes: SCOPES, loopback: privateAddresses },
      outbound: stack.add(createOutbound({ privateAddresses })),
    }),
    memberScopes: MEMBER_SCOPES,
    checkDriveToken: createDriveTokenCheck({ ...platform, makerOf }),
    brand: config.brand,
    ...(edges && { settled: edges.settled }),
    isWorkloadHost: (host) => host.endsWith(`.${config.domain}`) || isCustomDomain(host),
    anonymousPerMinute: config.anonymous_writes,
    identityProviders: config.identity_providers.map((one) => createIdentityProvider(one, toProviders)),
  });
  addUploadRoute(api, platform);
  addRegistryDoor(api, {
    ...{ deps: platform, authenticator, publicUrl: issuer },
    tries: new FailedTries(clock, config.anonymous_writes, platform.store.sharedUses("registry")),
    machines: { store: platform.store, clock, keyFor: platform.keyFor, isRunning },
  });
  await api.ready();
  return { edge, directCall };
}
