/** The composition root: makes everything, starts it in order, stops it in reverse. */
import { join } from "node:path";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { addOauthRoutes } from "./api/oauth-routes.ts";
import { addPlatformRoutes } from "./api/platform-routes.ts";
import { resourceHandlers } from "./api/resource-handlers.ts";
import { createApi } from "./api/server.ts";
import { addUploadRoute } from "./api/upload-route.ts";
import { pruneAudit } from "./auth/audit-retention.ts";
import { createAuthenticator } from "./auth/authenticator.ts";
import { type Bootstrapped, bootstrap, settleWorkspace } from "./auth/bootstrap.ts";
import { createIdentityProvider } from "./auth/external/identity-provider.ts";
import { createTokenVerifier } from "./auth/oauth/access-tokens.ts";
import { forgetEnded } from "./auth/rights/forget-ended.ts";
import { createMakers } from "./auth/rights/makers.ts";
import { unlockOrMake } from "./auth/secret-key.ts";
import { joinNode } from "./composition/join-node.ts";
import { startKeyRotation } from "./composition/key-rotation.ts";
import { createDoors, openMachine, runningSince, storedMb } from "./composition/machine.ts";
import { createModelHandler } from "./composition/model-handler.ts";
import { startModels } from "./composition/models.ts";
import { startReconciling } from "./composition/reconciling.ts";
import { logBounds, modelPrices, placeOf, settingsOf, usagePrices } from "./composition/settings.ts";
import { type Config, clientUrl, consoleBaseOf, isLoopback } from "./config.ts";
import { consoleHost, consoleUrl, sharedWithWorkloads } from "./contract/console.ts";
import { GATEWAY_DOCS_URL } from "./contract/gateway-errors.ts";
import { RESOURCE_METADATA } from "./contract/protected-resource.ts";
import type { GatewayDeps } from "./gateway/deps.ts";
import { createDirectory } from "./gateway/directory.ts";
import { createGateway } from "./gateway/gateway.ts";
import { createJobHandler } from "./gateway/job-handler.ts";
import { DEFAULT_LIMITS } from "./gateway/limits.ts";
import { createPrincipals } from "./gateway/principals.ts";
import { createEdge, type Edge } from "./http/edge.ts";
import { brandWords } from "./http/header-rules.ts";
import { BEHAVIOURS, HANDLERS } from "./kinds/behaviour.ts";
import { createDriveTokenCheck } from "./kinds/drive/token-check.ts";
import { createServedFunctions } from "./kinds/function/served.ts";
import { isServed } from "./kinds/hub/servers.ts";
import { OPERATIONS } from "./kinds/index.ts";
import { executionLine } from "./kinds/job/triggered.ts";
import { standingOf } from "./kinds/policy/placement.ts";
import type { Deps } from "./kinds/port.ts";
import { quotasByKind } from "./kinds/quota/quotas.ts";
import { createOwnEndpoints } from "./kinds/sandbox/own-endpoints.ts";
import { MEMBER_SCOPES, SCOPES } from "./kinds/scopes.ts";
import { kindTasks } from "./kinds/tasks.ts";
import { createCopyCheck } from "./kinds/workload/identity.ts";
import { Activity } from "./lib/activity.ts";
import { makeRoomToStart } from "./lib/disk/disk-reserve.ts";
import { watchDisk } from "./lib/disk/disk-watch.ts";
import { randomWord } from "./lib/ids.ts";
import { type Running, Stack } from "./lib/lifecycle.ts";
import type { TakenPort } from "./lib/network/held-port.ts";
import { createOutbound } from "./lib/network/outbound-http.ts";
import { createOutboundPost } from "./lib/network/outbound-post.ts";
import { isLoopbackName } from "./lib/network/site.ts";
import { type Clock, HOUR_MS, systemClock, toIso } from "./lib/time/clock.ts";
import { startMetering } from "./metering/metering.ts";
import { addUsageCounters } from "./metering/usage-counters.ts";
import { createProviderPort } from "./models/provider-port.ts";
import { openBlobStore } from "./node/blobs/blob-store.ts";
import type { Driver, OnStop } from "./node/driver.ts";
import { lazyDriver } from "./node/lazy-driver.ts";
import { openLogRoom } from "./node/logs/log-room.ts";
import { createTraffic } from "./node/traffic.ts";
import { createRequestKeeper } from "./reconcile/async-requests.ts";
import { startTasks } from "./reconcile/tasks.ts";
import { startTriggers } from "./reconcile/triggers.ts";
import { lockDataFolder } from "./store/database/data-lock.ts";
import { openStore, type Store } from "./store/store.ts";

export interface App extends Running {
  /** What becomes of running workloads; default: as configured. */
  stop(workloads?: OnStop): Promise<void>;
  /** Address of the management API without the prefix, as clients know it. */
  url: string;
  /** Origin of the pages for people. */
  pagesUrl: string;
  /** Address that the server listens on; differs from `url` behind a public address. */
  listensAt: string;
  bootstrapped: Bootstrapped;
  store: Store;
  /** The port, for an upgrade that hands it on. */
  port: Pick<Edge, "hold" | "adopt" | "fd">;
  /** Whether workloads can run on this machine. */
  runsWorkloads(): Promise<boolean>;
  /** Goes over to the next secret key, when there is one; see `berth rotate-key`. */
  rotateKey(): void;
}

export interface AppOptions {
  config: Config;
  log: Logger;
  version: string;
  clock?: Clock;
  /** Where workloads run; absent = this machine. */
  openDriver?(): Promise<Driver>;
  /** The port of an earlier server; absent = a new one. */
  port?: TakenPort | undefined;
  /** Fail where workloads cannot run, instead of serving everything else. */
  requireMachine?: boolean;
}

export async function startApp(options: AppOptions): Promise<App> {
  const { config, log, version, clock = systemClock, openDriver } = options;
  // Before anything is made: the first key is shown by a start that gets to its end only.
  const settings = settingsOf(config, version);
  const prices = usagePrices(config);
  const priceBook = modelPrices(config);
  const stack = new Stack();
  try {
    makeRoomToStart(config.data);
    stack.add(lockDataFolder(config.data, `pid ${process.pid}, started ${toIso(clock.now())}`));
    const disk = stack.add(
      watchDisk({
        dataDir: config.data,
        freeMinBytes: config.disk_free_min * 2 ** 20,
        reserveBytes: config.disk_reserve * 2 ** 20,
        log,
      }),
    );
    const store = await openStore({
      databaseUrl: config.database_url ?? null,
      dataDir: config.data,
      unlock: unlockOrMake(config),
      clock,
      makeRoom: () => disk.makeRoom(),
      quotas: quotasByKind(config.quotas),
      onError: (error) => log.error({ err: error }, "the database connection failed"),
    });
    stack.defer(() => store.close());
    const keyRotation = stack.add(startKeyRotation({ store, settings: config, log }));
    const bootstrapped = await bootstrap(store, {
      workspace: config.workspace,
      region: config.region,
      apiKey: config.api_key,
    });
    for (const { name, status } of await store.workspaces.listAcrossAccounts())
      if (status !== "ready") await settleWorkspace(store, name);

    const registry = new Registry();
    const baseBeforeListening = consoleBaseOf(config, await clientUrl(config));
    const issuer = (): string => settings.publicUrl;
    const consoleBase = () => consoleBaseOf(config, settings.publicUrl);
    const pagesUrl = (): string => consoleUrl(consoleBase());
    const isRunning = createCopyCheck({ store });
    const verifyToken = createTokenVerifier({ store, clock, issuer });
    const authenticator = stack.add(
      createAuthenticator({
        store,
        clock,
        brand: config.brand,
        verifyToken,
        isRunning,
        resourceMetadataUrl: () => `${issuer()}${RESOURCE_METADATA}`,
      }),
    );
    const privateAddresses = config.private_connections ?? isLoopback(config.host);
    const activity = new Activity(clock);
    const doors = createDoors(log);
    const logs = stack.add(
      openLogRoom({
        dir: join(config.data, "logs"),
        clock,
        bounds: logBounds(config),
        lastUsedMs: (uid) => activity.lastOf(uid),
        onError: (error) => log.warn({ err: error }, "the output of workloads could not be kept"),
      }),
    );
    const traffic = createTraffic(() => driver);
    const machine = openDriver ?? (() => openMachine({ config, settings, doors, traffic, log }));
    const driver = lazyDriver(settings.nodeId, async () => logs.listenTo(await machine()));
    let onStop: OnStop = config.on_stop;
    stack.defer(() => driver.stop(onStop));
    const holder = `${settings.nodeId}/${process.pid}/${randomWord(6)}`;
    const { meter, egress } = stack.add(
      await startMetering({
        store,
        book: prices,
        clock,
        monotonicMs: () => performance.now(),
        node: placeOf(config, settings),
        holder,
        runningSince: (uid) => runningSince(driver, uid),
        storedMb: (stored, owner) => storedMb({ store, driver, settings }, stored, owner),
        traffic,
        onError: (error) => log.warn({ err: error }, "usage could not be recorded yet, trying again"),
      }),
    );
    addUsageCounters(registry, store.usage);
    const { platform, deps } = joinNode(
      {
        ...{ store, clock, settings, log, prices },
        providers: createProviderPort(store, () => models),
        outbound: stack.add(createOutbound({ privateAddresses })),
        reconciledKinds: BEHAVIOURS.filter((half) => half.reconciled).map((half) => half.kind.name),
        keyFor: store.keyFor,
      },
      { ...{ driver, disk, logs, activity, meter, egress }, blobs: openBlobStore(join(config.data, "blobs")) },
    );
    const implementations = [
      ...BEHAVIOURS.flatMap((behaviour) => [...resourceHandlers(behaviour), ...(behaviour.handlers ?? [])]),
      ...HANDLERS,
    ];
    stack.add(
      startTasks({
        store,
        log,
        holder,
        tasks: [
          { name: "forget-idempotency", everyMs: HOUR_MS, run: () => store.idempotency.forgetOld() },
          { name: "forget-records", everyMs: HOUR_MS, run: () => store.records.forgetExpired() },
          { name: "forget-oauth", everyMs: HOUR_MS, run: () => store.oauth.forgetExpired() },
          { name: "forget-ended-rights", everyMs: HOUR_MS, run: () => forgetEnded({ store, clock }) },
          { name: "forget-sign-in-tries", everyMs: HOUR_MS, run: () => store.signInTries.forgetOld() },
          ...(config.audit_days === 0
            ? []
            : [{ name: "prune-audit", everyMs: HOUR_MS, run: pruneAudit(store, clock, config.audit_days) }]),
          ...kindTasks(deps),
        ],
      }),
    );
    const principals = createPrincipals(authenticator);
    const words = brandWords(config.brand);
    const models = stack.add(
      await startModels({
        config,
        store,
        meter,
        priceBook,
        clock,
        log,
        holder,
        privateAddresses,
        place: standingOf(settings),
      }),
    );
    const { makerOf } = stack.add(createMakers({ store, clock, authenticator }));
    const directory = stack.add(
      createDirectory({
        ...{ store, clock, activity, makerOf, place: standingOf(settings) },
        isServed: (found) => isServed(found, settings),
      }),
    );
    const gateway = createGateway({
      settings: {
        brand: config.brand,
        domain: config.domain,
        trustProxy: config.trust_proxy > 0,
        pathPages: config.path_pages,
        consoleHost: consoleHost(baseBeforeListening),
        isLoopback: isLoopbackName(new URL(baseBeforeListening.publicUrl).hostname),
        docsUrl: GATEWAY_DOCS_URL,
        limits: DEFAULT_LIMITS,
      },
      clock,
      log,
      registry,
      random: Math.random,
      meter: () => {},
      keepRequest: createRequestKeeper(store),
      answerers: { model: createModelHandler({ ...principals, models, brand: config.brand }) },
      handlers: {
        job: createJobHandler({ brand: config.brand, manage: (req, res) => edge.manage(req, res) }),
      },
      ownEndpoint: ownEndpoints(deps),
      issuer,
      ...principals,
      ...directory,
    });
    stack.add(startReconciling({ deps, driver, holder, place: placeOf(config, settings) }));
    stack.add(
      await startTriggers({
        ...{ store, clock, log, meter, version, brandWords: words, place: placeOf(config, settings) },
        replay: gateway.replay,
        compose: gateway.compose,
        post: createOutboundPost({ privateAddresses: config.private_callbacks }),
        executions: executionLine(deps),
      }),
    );
    // Last in, first out: the port closes before anything that a request in flight may need.
    const edge = stack.add(createEdge(config, gateway));
    const api = createApi({
      deps: platform,
      authenticator,
      implementations,
      registry,
      serverFactory: edge.serve,
      trustProxy: config.trust_proxy,
    });
    addPlatformRoutes(api, { deps: platform, operations: OPERATIONS, registry, authenticator, pagesUrl });
    const toProviders = { clock, outbound: stack.add(createOutbound({ privateAddresses: true })) };
    addOauthRoutes(api, {
      ...platform,
      authenticator,
      verifyToken,
      issuer,
      pagesUrl,
      cookiesAreOwn: () => pagesUrl().startsWith("https:") || sharedWithWorkloads(consoleBase()) === null,
      scopes: SCOPES,
      memberScopes: MEMBER_SCOPES,
      checkDriveToken: createDriveTokenCheck({ ...deps, makerOf }),
      brand: config.brand,
      isWorkloadHost: (host) => host.endsWith(`.${config.domain}`) || directory.isCustomDomain(host),
      isRunning,
      anonymousPerMinute: config.anonymous_writes,
      identityProviders: config.identity_providers.map((one) => createIdentityProvider(one, toProviders)),
    });
    addUploadRoute(api, platform);
    await api.ready();
    if (options.requireMachine) await driver.opened();
    const listensAt = await edge.listen(options.port);
    settings.publicUrl = await clientUrl(config, Number(new URL(listensAt).port) || config.port);
    doors.open(edge);
    return {
      url: settings.publicUrl,
      pagesUrl: pagesUrl(),
      listensAt,
      bootstrapped,
      store,
      port: edge,
      runsWorkloads: () =>
        driver.opened().then(
          () => true,
          () => false,
        ),
      rotateKey: () => keyRotation.rotate(),
      stop: (workloads) => {
        onStop = workloads ?? onStop;
        return stack.stop();
      },
    };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/** Requests that are answered here instead of by a workload. */
function ownEndpoints(deps: Deps): NonNullable<GatewayDeps["ownEndpoint"]> {
  const inSandbox = createOwnEndpoints(deps);
  const served = createServedFunctions(deps);
  return (request) => (request.kind === "function" ? served(request) : inSandbox(request));
}
