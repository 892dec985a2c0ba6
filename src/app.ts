/** The composition root: makes everything, starts it in order, stops it in reverse. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism, hostname, totalmem } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { parseEnv } from "node:util";
import type { Logger } from "pino";
import { collectDefaultMetrics, Registry } from "prom-client";
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
import { loadSecretKey, refuseAnotherKey, secretKeyPlace } from "./auth/secret-key.ts";
import { openBlobStore } from "./blobs/blob-store.ts";
import { type Config, isLoopback } from "./config.ts";
import { RESOURCE_METADATA } from "./contract/protected-resource.ts";
import { createEdge, type Edge } from "./edge.ts";
import type { GatewayDeps } from "./gateway/deps.ts";
import { createDirectory } from "./gateway/directory.ts";
import { createGateway } from "./gateway/gateway.ts";
import { brandWords } from "./gateway/header-rules.ts";
import { createJobHandler } from "./gateway/job-handler.ts";
import { DEFAULT_LIMITS } from "./gateway/limits.ts";
import { createModelGateway } from "./gateway/models/model-gateway.ts";
import { createModelHandler } from "./gateway/models/model-handler.ts";
import { createPriceBook, parsePriceTable } from "./gateway/models/price-book.ts";
import { createProviderPort } from "./gateway/models/provider-port.ts";
import { createStoredBudget } from "./gateway/models/stored-budget.ts";
import { createStoredModels } from "./gateway/models/stored-models.ts";
import { createTokenBudget } from "./gateway/models/token-budget.ts";
import { createPrincipals } from "./gateway/principals.ts";
import { BEHAVIOURS, HANDLERS } from "./kinds/behaviour.ts";
import { createServedFunctions } from "./kinds/function/served.ts";
import { isServed } from "./kinds/hub/servers.ts";
import { findDriverImage } from "./kinds/image/resolve.ts";
import { OPERATIONS } from "./kinds/index.ts";
import { createTaskRunner } from "./kinds/job/runner.ts";
import { executionLine } from "./kinds/job/triggered.ts";
import type { Deps, Settings } from "./kinds/port.ts";
import { quotasByKind } from "./kinds/quota/quotas.ts";
import { createOwnEndpoints } from "./kinds/sandbox/own-endpoints.ts";
import { SCOPES } from "./kinds/scopes.ts";
import { kindTasks } from "./kinds/tasks.ts";
import { createCopyCheck } from "./kinds/workload/identity.ts";
import { Activity } from "./lib/activity.ts";
import { type Clock, DAY_MS, HOUR_MS, SECOND_MS, systemClock, toIso } from "./lib/clock.ts";
import { randomWord } from "./lib/ids.ts";
import { type Running, Stack } from "./lib/lifecycle.ts";
import { createOutbound } from "./lib/outbound-http.ts";
import { createOutboundPost } from "./lib/outbound-post.ts";
import { deriveKey } from "./lib/sealed-box.ts";
import { openLogRoom } from "./logs/log-room.ts";
import { startMetering } from "./metering/metering.ts";
import { createTokenMeter } from "./metering/model-tokens.ts";
import {
  createPriceBook as createUsagePriceBook,
  parsePriceFile,
  type PriceBook as UsagePrices,
} from "./metering/price-book.ts";
import type { Stored } from "./metering/resource-rates.ts";
import { addUsageCounters } from "./metering/usage-counters.ts";
import { createRequestKeeper } from "./reconcile/async-requests.ts";
import { startJobScheduler } from "./reconcile/job-scheduler.ts";
import { startReconcileLoop } from "./reconcile/loop.ts";
import { startTasks } from "./reconcile/tasks.ts";
import { startTriggers } from "./reconcile/triggers.ts";
import type { Driver, OnStop } from "./runtime/driver.ts";
import { type LazyDriver, lazyDriver } from "./runtime/lazy-driver.ts";
import { createTraffic } from "./runtime/traffic.ts";
import { lockDataFolder } from "./store/data-lock.ts";
import type { Resource } from "./store/resource.ts";
import { openStore, type Store } from "./store/store.ts";

export interface App extends Running {
  /** What becomes of running workloads; default: as configured. */
  stop(workloads?: OnStop): Promise<void>;
  /** Address of the management API without the prefix. */
  url: string;
  bootstrapped: Bootstrapped;
  store: Store;
}

export interface AppOptions {
  config: Config;
  log: Logger;
  version: string;
  clock?: Clock;
  /** Where workloads run; absent = this machine. */
  openDriver?(): Promise<Driver>;
}

export async function startApp({ config, log, version, clock = systemClock, openDriver }: AppOptions): Promise<App> {
  const stack = new Stack();
  try {
    if (!config.database_url)
      stack.add(lockDataFolder(config.data, `pid ${process.pid}, started ${toIso(clock.now())}`));
    const secretKey = loadSecretKey(config.data, config.secret_key);
    const store = await openStore({
      databaseUrl: config.database_url ?? null,
      dataDir: config.data,
      secretKey,
      clock,
      quotas: quotasByKind(config.quotas),
      onError: (error) => log.error({ err: error }, "the database connection failed"),
    });
    stack.defer(() => store.close());
    await refuseAnotherKey(store.records, secretKey, secretKeyPlace(config.data, config.secret_key));
    const bootstrapped = await bootstrap(store, {
      workspace: config.workspace,
      region: config.region,
      apiKey: config.api_key,
    });
    for (const { name, status } of await store.workspaces.listAcrossAccounts())
      if (status !== "ready") await settleWorkspace(store, name);

    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    const settings = settingsOf(config, version);
    const issuer = (): string => settings.publicUrl;
    const isRunning = createCopyCheck({ store });
    const authenticator = stack.add(
      createAuthenticator({
        store,
        clock,
        brand: config.brand,
        verifyToken: createTokenVerifier({ store, clock, issuer }),
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
    const prices = createUsagePrices(config.price_file);
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
    const deps: Deps = {
      providers: createProviderPort(store, () => models),
      driver,
      prices,
      meter,
      egress,
      outbound: stack.add(createOutbound({ privateAddresses })),
      blobs: openBlobStore(join(config.data, "blobs")),
      logs,
      activity,
      store,
      clock,
      settings,
      log,
      reconciledKinds: BEHAVIOURS.filter((half) => half.reconciled).map((half) => half.kind.name),
      keyFor: (purpose) => deriveKey(secretKey, purpose),
    };
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
      createModelGateway({
        resolveModel: stack.add(createStoredModels(store)).resolveModel,
        usage: stack.add(
          createTokenMeter({
            store,
            meter,
            onError: (error) => log.warn({ err: error }, "the tokens of a request could not be recorded"),
          }),
        ),
        budget: createTokenBudget({
          state: createStoredBudget({
            records: store.records,
            clock,
            holder,
            alone: store.database.dialect === "sqlite",
          }),
          clock,
        }),
        priceBook: createPriceBook(readPrices(config.model_prices)),
        clock,
        log,
        privateAddresses,
        location: { location: config.region },
        brand: config.brand,
        docsUrl: DOCS_URL,
      }),
    );
    const directory = stack.add(
      createDirectory({ store, clock, activity, isServed: (found) => isServed(found, settings) }),
    );
    const gateway = createGateway({
      settings: {
        brand: config.brand,
        domain: config.domain,
        trustProxy: config.trust_proxy,
        docsUrl: DOCS_URL,
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
      deps,
      authenticator,
      implementations,
      registry,
      serverFactory: edge.serve,
      trustProxy: config.trust_proxy,
    });
    addPlatformRoutes(api, { deps, operations: OPERATIONS, registry });
    addOauthRoutes(api, {
      ...deps,
      authenticator,
      issuer,
      scopes: SCOPES,
      brand: config.brand,
      isWorkloadHost: (host) => host.endsWith(`.${config.domain}`) || directory.isCustomDomain(host),
      isRunning,
      identityProviders: config.identity_providers.map((one) => createIdentityProvider(one, clock)),
    });
    addUploadRoute(api, deps);
    await api.ready();
    const url = await edge.listen();
    if (!config.public_url) settings.publicUrl = url;
    doors.open(edge);
    return {
      url: settings.publicUrl,
      bootstrapped,
      store,
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

/** The operator's own prices of models; those shipped apply to the rest. */
const readPrices = (file: string | undefined) =>
  file === undefined ? {} : parsePriceTable(readFileSync(file, "utf8"));

const settingsOf = (config: Config, version: string): Settings => ({
  brand: config.brand,
  region: config.region,
  plan: config.plan,
  nodeId: hostname(),
  publicUrl: (config.public_url ?? "").replace(/\/+$/, ""),
  domain: config.domain ?? null,
  version,
  standbyAfterMs: config.standby_after * SECOND_MS,
  idleAfterMs: config.idle_after * SECOND_MS,
  egressPool: config.egress_pool,
  dnsServers: config.dns_servers,
  publicIps: config.public_ips,
  quotas: quotasByKind(config.quotas),
  privateCallbacks: config.private_callbacks,
  features: config.features,
  usageEventsDays: config.usage_events_days,
  jobSlots: config.job_slots || availableParallelism() * SLOTS_PER_CORE,
  jobMemoryMb: config.job_memory || Math.floor((machineMemory() / 2 ** 20) * JOB_MEMORY_SHARE),
  jobLeaseMs: config.job_lease * SECOND_MS,
  jobGraceMs: config.job_grace * SECOND_MS,
  imageBytesMax: config.image_max * 2 ** 20,
  buildEnv: config.build_env_file === undefined ? {} : readVariables(config.build_env_file),
  otlpUrl: config.otlp_url ?? null,
  threadsKeptMs: config.thread_keep_days * DAY_MS,
  executionsKeptMs: config.job_keep_days * DAY_MS,
});

const readVariables = (file: string): Record<string, string> =>
  parseEnv(readFileSync(file, "utf8")) as Record<string, string>;

const logBounds = ({ log_days: days, log_workload_mb: workloadMb, log_total_mb: totalMb }: Config) => ({
  ageMs: days * DAY_MS,
  workloadBytes: workloadMb * 2 ** 20,
  totalBytes: totalMb * 2 ** 20,
});

/** Tasks wait for others most of the time. */
/** Explains the error codes of the inference path. */
const DOCS_URL = "/docs/gateway";
const SLOTS_PER_CORE = 4;
const JOB_MEMORY_SHARE = 0.75;

/** A container's limit is told as 0 or a huge number where there is none. */
const machineMemory = (): number => Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());

/** Where workloads of this server are: two servers on one machine have a data folder each. */
const placeOf = ({ data }: Config, { nodeId }: Settings): string =>
  `${nodeId}/${createHash("sha256").update(data).digest("hex").slice(0, 8)}`;

const createUsagePrices = (file: string | undefined): UsagePrices =>
  file === undefined ? createUsagePriceBook() : createUsagePriceBook(parsePriceFile(readFileSync(file, "utf8")));

/** A machine that cannot run workloads runs none, and has no images either. */
async function runningSince(driver: Driver, uid: string): Promise<number | null> {
  const observed = await driver.observe(uid).catch(() => null);
  return observed && observed.state !== "exited" ? Date.parse(observed.createdAt) : null;
}

async function storedMb(
  { store, driver, settings }: Pick<Deps, "store" | "driver" | "settings">,
  stored: Stored,
  owner: Resource,
): Promise<number | null> {
  const count = async (): Promise<number | null> => {
    if ("drive" in stored) return (await driver.driveBytes(stored.drive)) ?? 0;
    if ("snapshot" in stored)
      return (await driver.listSnapshots()).find(({ id }) => id === stored.snapshot)?.sizeBytes ?? null;
    const image = await findDriverImage(stored.image, owner, { store, driver, settings });
    return image === null ? null : driver.imageBytes(image);
  };
  const bytes = await count().catch(() => null);
  return bytes === null ? null : Math.ceil(bytes / 2 ** 20);
}

interface Reconciling {
  deps: Deps;
  driver: LazyDriver;
  holder: string;
  place: string;
}

/** The loop starts once the machine is ready; until then creates wait. Where nothing can run, tasks stay queued. */
function startReconciling({ deps, driver, holder, place }: Reconciling): Running {
  const stack = new Stack();
  let stopped = false;
  const add = async (start: () => Promise<Running>): Promise<void> => {
    if (stopped) return;
    const running = stack.add(await start());
    if (stopped) await running.stop();
  };
  const startJobs = (): Promise<Running> => {
    const { store, clock, log, settings } = deps;
    const capacity = { slots: settings.jobSlots, memoryMb: settings.jobMemoryMb };
    const runner = createTaskRunner(deps);
    const { jobLeaseMs: leaseMs, executionsKeptMs: keepMs } = settings;
    return startJobScheduler({ store, clock, log, runner, capacity, place, leaseMs, keepMs });
  };
  driver
    .opened()
    .then(() => add(startJobs))
    .catch((error: unknown) => deps.log.error({ err: error }, "workloads cannot run on this machine"))
    .then(() => add(() => startReconcileLoop({ deps, behaviours: BEHAVIOURS, holder })))
    .catch((error: unknown) => deps.log.error({ err: error }, "the reconcile loop did not start"));
  return {
    async stop() {
      stopped = true;
      await stack.stop();
    },
  };
}

/** Connections from inside workloads; they wait for nothing, so before the server listens they are refused. */
function createDoors(log: Logger) {
  let edge: Edge | null = null;
  return {
    open(opened: Edge): void {
      edge = opened;
    },
    accept(door: "platform" | "egress", uid: string, socket: Duplex): void {
      if (door === "platform" && edge) {
        edge.accept(socket);
        return;
      }
      log.debug({ door, uid }, "a door that leads nowhere");
      socket.destroy();
    },
  };
}

interface MachineParts {
  config: Config;
  settings: Settings;
  doors: ReturnType<typeof createDoors>;
  traffic: ReturnType<typeof createTraffic>;
  log: Logger;
}

async function openMachine({ config, settings, doors, traffic, log }: MachineParts): Promise<Driver> {
  const [{ openLocalDriver }, { cachedSandboxd }] = await Promise.all([
    import("./runtime/drivers/local/local-driver.ts"),
    import("./runtime/sandboxd-build.ts"),
  ]);
  return openLocalDriver({
    dataDir: join(config.data, "runtime"),
    brand: config.brand,
    sandboxd: await cachedSandboxd(join(config.data, "runtime", "bin")),
    nodeBinary: process.execPath,
    node: settings.nodeId,
    poolSize: config.pool_size,
    allowUnisolated: config.allow_unisolated,
    onPlatform: (uid, socket) => doors.accept("platform", uid, socket),
    egress: { onBytes: (uid, sentBytes) => traffic.onBytes(uid, sentBytes) },
    onWarning: (message, fields) => log.warn(fields, message),
  });
}
