/** The fourth phase: the gateway to workloads, and the model engine behind it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { hostsBelow } from "../contract/addresses.ts";
import { consoleHost } from "../contract/console.ts";
import type { DirectCall } from "../contract/direct-call.ts";
import { GATEWAY_DOCS_URL } from "../contract/gateway-errors.ts";
import { type CertificateTable, createCertificateTable } from "../gateway/certificate-table.ts";
import { isFailure } from "../gateway/counters.ts";
import type { GatewayDeps, GatewayPeers, GatewaySettings } from "../gateway/deps.ts";
import { createDirectory } from "../gateway/directory.ts";
import { createGateway, type Gateway } from "../gateway/gateway.ts";
import { createJobHandler } from "../gateway/job-handler.ts";
import { clientsMaxOf, DEFAULT_LIMITS, type GatewayLimits, openMaxOf } from "../gateway/limits.ts";
import { sharesOf } from "../gateway/open-exchanges.ts";
import type { RightsChange } from "../http/open-rights.ts";
import { uploadsOf } from "../kinds/behaviour.ts";
import { createServedFunctions } from "../kinds/function/served.ts";
import { createToolRecords } from "../kinds/function/tool-records.ts";
import { isServed } from "../kinds/hub/servers.ts";
import { standingOf } from "../kinds/policy/placement.ts";
import type { Deps } from "../kinds/port.ts";
import { createOwnEndpoints } from "../kinds/sandbox/own-endpoints.ts";
import { receiveUpload } from "../kinds/uploads.ts";
import { isLoopbackName } from "../lib/network/site.ts";
import { edgeProcessesOf } from "../lib/schemas/edge-settings.ts";
import { isTls, proxiesOf } from "../lib/schemas/tls-settings.ts";
import type { ResourceMetrics } from "../metering/resource-metrics/recorder.ts";
import type { ModelGateway } from "../models/model-gateway.ts";
import { createRequestKeeper } from "../reconcile/async-requests.ts";
import { createEdges, type Edges } from "./edges.ts";
import { facadesOf } from "./facades.ts";
import type { Foundation } from "./foundation.ts";
import type { Identity } from "./identity.ts";
import { createModelHandler } from "./model-handler.ts";
import { startModels } from "./models.ts";
import { privateAddressesOf } from "./settings.ts";
import type { Start } from "./start.ts";

export interface Inference {
  gateway: Gateway;
  models: ModelGateway;
  /** Null where the server accepts connections itself. */
  edges: Edges | null;
  isCustomDomain(host: string): boolean;
  contextOf: CertificateTable["contextOf"];
}

/** `manage` serves the requests that the gateway leaves to the management API; `call` is that API for façades. */
export async function startInference(
  start: Start,
  foundation: Foundation,
  identity: Identity,
  deps: Deps,
  metrics: ResourceMetrics,
  peers: GatewayPeers | undefined,
  manage: (req: IncomingMessage, res: ServerResponse) => void,
  call: DirectCall,
): Promise<Inference> {
  const { config, clock, log, settings, modelPrices, holder, stack } = start;
  const { store, registry } = foundation;
  const { issuer, pagesUrl, principals, makerOf, baseBeforeListening } = identity;
  const { brand, domain } = config;
  const place = standingOf(settings);
  const models = stack.add(
    await startModels({
      ...{ config, store, clock, log, holder, place },
      meter: deps.meter,
      metrics,
      priceBook: modelPrices,
      privateAddresses: privateAddressesOf(config),
    }),
  );
  const directory = stack.add(
    createDirectory({
      ...{ store, clock, makerOf, place },
      self: peers === undefined || deps.nodes.shared ? null : deps.nodes.self.id,
      activity: deps.activity,
      isServed: (found) => isServed(found, settings),
    }),
  );
  await directory.opened();
  const publicHost = new URL(baseBeforeListening.publicUrl).hostname;
  const own = { domain, publicHost, consoleHost: consoleHost(baseBeforeListening) };
  const certificates = stack.add(
    createCertificateTable({ store, own, hasOwnFiles: config.tls_cert !== undefined, now: () => clock.now() }),
  );
  if (isTls(config)) await certificates.opened();
  const limits = limitsOf(config.open_requests);
  const gatewaySettings: GatewaySettings = {
    brand,
    ...own,
    proxies: proxiesOf(config),
    pathPages: config.path_pages,
    isLoopback: isLoopbackName(publicHost),
    docsUrl: GATEWAY_DOCS_URL,
    limits,
  };
  const count = edgeProcessesOf(config);
  const edges =
    count === 0
      ? null
      : createEdges(count, start, foundation, identity, deps, directory, certificates, metrics, gatewaySettings);
  const toolRecords = createToolRecords(deps);
  const gateway = createGateway({
    settings: {
      ...gatewaySettings,
      limits: { ...limits, openMax: sharesOf(limits.openMax, count).owner },
    },
    ...(edges && { edgeTotals: edges.totals }),
    ...{ clock, log, registry, issuer },
    consoleOrigin: pagesUrl,
    ...(peers && { peers }),
    random: Math.random,
    meter: ({ workload: { uid }, durationMs, heldMs, status, error, clientGone }) =>
      metrics.ended(uid, {
        durationMs,
        isError: isFailure({ status, error, clientGone }),
        isCold: heldMs !== null,
      }),
    keepRequest: createRequestKeeper(store),
    answerers: { model: createModelHandler({ ...principals, models, brand }) },
    facades: facadesOf(config.facades, {
      ...{ ...principals, ...directory, store, models, brand, clock, call },
      keyFor: store.keyFor,
      hostsBelow: () => hostsBelow({ domain, publicUrl: settings.publicUrl }),
      files: deps.blobs,
      send: (path, archive) => receiveUpload(path.slice(path.lastIndexOf("/") + 1), archive, uploadsOf, deps),
    }),
    handlers: { job: createJobHandler({ brand, manage }) },
    ownEndpoint: ownEndpoints(deps),
    taskKey: store.keyFor("mcp-tasks"),
    onRightsChange: (listener) => followRights(store, listener),
    toolsListed: toolRecords.listed,
    toolsDeployed: toolRecords.deployed,
    ...principals,
    ...directory,
  });
  return { gateway, models, edges, isCustomDomain: directory.isCustomDomain, contextOf: certificates.contextOf };
}

/** Kinds whose addresses lead to another resource. */
const CLAIMING: ReadonlySet<string> = new Set(["preview", "previewtoken", "customdomain"]);

/** Tells of changes after which a caller may have lost a right. */
function followRights(store: Foundation["store"], listener: (change: RightsChange) => void): () => void {
  const ends = [
    store.onIdentityChange(() => listener("all")),
    store.database.onChange(({ topic, key }) => {
      if (topic !== "resource") return;
      const slash = key.indexOf("/");
      listener(CLAIMING.has(key.slice(0, slash)) ? "claims" : { uid: key.slice(slash + 1) });
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

const limitsOf = (openRequests: number): GatewayLimits => ({
  ...DEFAULT_LIMITS,
  openMax: openMaxOf(openRequests),
  clientsMax: clientsMaxOf(openRequests),
});

/** Requests that are answered here instead of by a workload. */
function ownEndpoints(deps: Deps): NonNullable<GatewayDeps["ownEndpoint"]> {
  const inSandbox = createOwnEndpoints(deps);
  const served = createServedFunctions(deps);
  return (request) => (request.kind === "function" ? served(request) : inSandbox(request));
}
