/** The composition root: makes everything, starts it in order, stops it in reverse. */
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { hostname } from "node:os";
import type { Logger } from "pino";
import { collectDefaultMetrics, Registry } from "prom-client";
import { addPlatformRoutes } from "./api/platform-routes.ts";
import { resourceHandlers } from "./api/resource-handlers.ts";
import { createApi } from "./api/server.ts";
import { createAuthenticator } from "./auth/authenticator.ts";
import { type Bootstrapped, bootstrap, settleWorkspace } from "./auth/bootstrap.ts";
import { loadSecretKey } from "./auth/secret-key.ts";
import type { Config } from "./config.ts";
import { PlatformError } from "./contract/errors.ts";
import { attachGateway, SERVER_OPTIONS } from "./gateway/attach.ts";
import { createDirectory } from "./gateway/directory.ts";
import { createGateway, type Gateway } from "./gateway/gateway.ts";
import { DEFAULT_LIMITS } from "./gateway/limits.ts";
import { createPrincipals } from "./gateway/principals.ts";
import { BEHAVIOURS, HANDLERS } from "./kinds/behaviour.ts";
import { OPERATIONS } from "./kinds/index.ts";
import type { Deps, Settings } from "./kinds/port.ts";
import { kindTasks } from "./kinds/tasks.ts";
import { Activity } from "./lib/activity.ts";
import { type Clock, HOUR_MS, systemClock, toIso } from "./lib/clock.ts";
import { randomWord } from "./lib/ids.ts";
import { type Running, Stack } from "./lib/lifecycle.ts";
import { deriveKey } from "./lib/sealed-box.ts";
import { startTasks } from "./reconcile/tasks.ts";
import { lockDataFolder } from "./store/data-lock.ts";
import { openStore, type Store } from "./store/store.ts";

/** Requests in flight get this long to finish when the server is told to stop. */
const DRAIN_MS = 10_000;
const SWEEP_MS = 50;

export interface App extends Running {
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
}

export async function startApp({ config, log, version, clock = systemClock }: AppOptions): Promise<App> {
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
      onError: (error) => log.error({ err: error }, "the database connection failed"),
    });
    stack.defer(() => store.close());
    const bootstrapped = await bootstrap(store, {
      workspace: config.workspace,
      region: config.region,
      apiKey: config.api_key,
    });
    for (const { name, status } of await store.workspaces.listAcrossAccounts())
      if (status !== "ready") await settleWorkspace(store, name);

    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    const authenticator = stack.add(createAuthenticator({ store, clock, brand: config.brand }));
    const settings = settingsOf(config, version);
    const deps: Deps = {
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
    const holder = `${settings.nodeId}/${process.pid}/${randomWord(6)}`;
    stack.add(
      startTasks({
        store,
        log,
        holder,
        tasks: [
          { name: "forget-idempotency", everyMs: HOUR_MS, run: () => store.idempotency.forgetOld() },
          ...kindTasks(deps),
        ],
      }),
    );
    const activity = new Activity(clock);
    const gateway = createGateway({
      settings: {
        brand: config.brand,
        domain: config.domain,
        trustProxy: config.trust_proxy,
        docsUrl: "/docs/gateway",
        limits: DEFAULT_LIMITS,
      },
      clock,
      log,
      registry,
      random: Math.random,
      meter: () => {},
      ...createPrincipals(authenticator),
      ...stack.add(createDirectory({ store, clock, activity })),
    });
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
    await api.ready();
    const url = await edge.listen();
    if (!config.public_url) settings.publicUrl = url;
    return { url: settings.publicUrl, bootstrapped, store, stop: () => stack.stop() };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

const settingsOf = (config: Config, version: string): Settings => ({
  brand: config.brand,
  region: config.region,
  plan: config.plan,
  nodeId: hostname(),
  publicUrl: (config.public_url ?? "").replace(/\/+$/, ""),
  domain: config.domain ?? null,
  version,
  egressPool: config.egress_pool,
  publicIps: config.public_ips,
});

interface Edge extends Running {
  /** Makes the server; its routes arrive with the first handler. */
  serve(management: RequestListener): Server;
  listen(): Promise<string>;
}

/** The one port: the raw address decides between the gateway and the management API. */
function createEdge(config: Config, gateway: Gateway): Edge {
  let server: Server | null = null;
  return {
    serve(management) {
      server =
        config.tls_cert && config.tls_key
          ? createReloadingTls(config.tls_cert, config.tls_key)
          : createServer(SERVER_OPTIONS);
      attachGateway(server, gateway, { request: management });
      return server;
    },
    async listen() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      server?.once("error", reject).listen(config.port, config.host, resolve);
      await promise.catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EADDRINUSE") throw error;
        throw new PlatformError(
          "conflict",
          `Port ${config.port} on ${config.host} is in use. Choose another with PORT or --port.`,
          { cause: error },
        );
      });
      const address = server?.address();
      const port = address !== null && typeof address === "object" ? address?.port : config.port;
      const host = config.host.includes(":") ? `[${config.host}]` : config.host;
      return `${config.tls_cert ? "https" : "http"}://${host}:${port}`;
    },
    async stop() {
      const open = server;
      if (!open?.listening) return;
      const closed = new Promise((resolve) => open.close(resolve));
      // A connection whose last request has just been answered would otherwise be kept for another one.
      const sweep = setInterval(() => open.closeIdleConnections(), SWEEP_MS);
      const timer = setTimeout(() => open.closeAllConnections(), DRAIN_MS);
      try {
        await gateway.stop(DRAIN_MS);
        await closed;
      } finally {
        clearInterval(sweep);
        clearTimeout(timer);
      }
      if (config.tls_cert) unwatchFile(config.tls_cert);
    },
  };
}

function createReloadingTls(certFile: string, keyFile: string): Server {
  const read = () => ({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
  const server: TlsServer = createTlsServer({ ...SERVER_OPTIONS, ...read() });
  watchFile(certFile, { interval: 5000 }, () => {
    try {
      server.setSecureContext(read());
    } catch {
      // A certificate that is being replaced may be half there; the old one serves until the next look.
    }
  });
  return server as unknown as Server;
}
