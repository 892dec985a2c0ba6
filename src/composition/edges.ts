/** The edge processes of this server, where it has any: made with the gateway, opened with the port. */
import { credentialOf } from "../auth/authenticator.ts";
import { createEdgeProcesses, type EdgeProcesses } from "../edge/owner/edge-processes.ts";
import { openOwnerDoor } from "../edge/owner/owner-door.ts";
import type { CertificateTable } from "../gateway/certificate-table.ts";
import type { GatewaySettings } from "../gateway/deps.ts";
import type { Directory } from "../gateway/directory.ts";
import { sharesOf } from "../gateway/open-exchanges.ts";
import type { Edge } from "../http/edge.ts";
import { httpAnswer, tlsAnswer } from "../kinds/custom-domain/challenges.ts";
import type { Deps } from "../kinds/port.ts";
import type { ResourceMetrics } from "../metering/resource-metrics/recorder.ts";
import type { Foundation } from "./foundation.ts";
import { hostsOf, type Identity } from "./identity.ts";
import type { Start } from "./start.ts";

export interface Edges extends EdgeProcesses {
  /** Starts the processes on the port of the server. */
  serve(edge: Edge): Promise<void>;
}

export function createEdges(
  count: number,
  { config, log, stack }: Start,
  { store, registry }: Foundation,
  identity: Identity,
  deps: Deps,
  directory: Directory,
  certificates: CertificateTable,
  metrics: ResourceMetrics,
  { proxies: _, ...settings }: GatewaySettings,
): Edges {
  const { principals, authenticator, issuer, pagesUrl } = identity;
  const edges = createEdgeProcesses({
    ...{ ...directory, count, log, registry },
    authenticate: principals.authenticate,
    authorize: principals.authorize,
    stillAllowed: principals.stillAllowed,
    rememberedUntil: (token) => authenticator.rememberedUntil(credentialOf(token).hash),
    challengeAnswer: (token) => httpAnswer(token, deps),
    challengeCredential: (host) => tlsAnswer(host, deps),
    onChange: (listener) => store.database.onChange(listener),
    onIdentityChange: store.onIdentityChange,
    onServed: ({ uid, durationMs, isError }) => metrics.ended(uid, { durationMs, isError, isCold: false }),
    onCertificate: certificates.onCredential,
  });
  const { limits } = settings;
  return {
    ...edges,
    async serve(edge) {
      const door = stack.add(await openOwnerDoor(config.data, edge.accept));
      // Above the port on the stack: what the processes still hand on is served until they have ended.
      stack.add(edges);
      await edges.open({
        fd: edge.fd(),
        takePort: edge.takePort,
        adopt: edge.adopt,
        onOwnCertificate: (listener) => edge.certificate()?.follow(listener),
        start: () => ({
          config: portSettings(config),
          settings: {
            ...settings,
            limits: {
              ...limits,
              openMax: sharesOf(limits.openMax, count).edge,
              newcomersMax: Math.ceil(limits.newcomersMax / count),
              clientsMax: Math.ceil(limits.clientsMax / count),
            },
          },
          issuer: issuer(),
          consoleOrigin: pagesUrl(),
          names: hostsOf(identity),
          certificate: edge.certificate()?.current() ?? null,
          certificates: certificates.credentials(),
          domains: directory.customDomains.all(),
          door: { path: door.path, secret: door.secret },
          logsDebug: log.isLevelEnabled("debug"),
        }),
      });
    },
  };
}

/** The settings of the port alone. The server itself redirects plain HTTP, where it has a port for that. */
function portSettings(config: Start["config"]) {
  const { host, port, data, domain, region, public_url, tls, tls_cert, tls_key } = config;
  const { trust_proxy, trusted_proxies, proxy_protocol } = config;
  return {
    ...{ host, port, data, domain, region, public_url, tls, tls_cert, tls_key },
    ...{ trust_proxy, trusted_proxies, proxy_protocol, http_port: undefined },
  };
}
