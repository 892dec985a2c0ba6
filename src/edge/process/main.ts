/**
 * An edge process: accepts connections on the server's port, forwards requests to workloads that run, and hands every
 * other request to the owner. It opens no database. It ends when its owner does.
 */
import type { Socket } from "node:net";
import { Registry } from "prom-client";
import { isOwnSandboxPath } from "../../contract/sandbox-own-paths.ts";
import { isFailure } from "../../gateway/counters.ts";
import type { GatewayDeps, GatewayLog, OwnEndpoint } from "../../gateway/deps.ts";
import { createGateway, type Gateway } from "../../gateway/gateway.ts";
import { nearestIn } from "../../gateway/nearest-domain.ts";
import { NOTHING_COUNTED } from "../../gateway/totals.ts";
import { createEdge, type Edge } from "../../http/edge.ts";
import type { RightsChange } from "../../http/open-rights.ts";
import { renewedCertificate } from "../../http/tls/default-certificate.ts";
import { NamedContexts } from "../../http/tls/named-contexts.ts";
import { detach } from "../../lib/network/held-port.ts";
import { proxiesOf } from "../../lib/schemas/tls-settings.ts";
import { settleMemory } from "../../lib/settle-memory.ts";
import { HOUR_MS, systemClock } from "../../lib/time/clock.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import { type EdgeStart, type FromEdge, type FromOwner, OWNER, PORT_FD, type Served } from "../messages.ts";
import { createCallers } from "./callers.ts";
import { createLeases, TELL_MS } from "./leases.ts";
import { dialOwner } from "./owner-dial.ts";
import { Asking } from "./questions.ts";
import { createRoutes } from "./routes.ts";

/** Time for requests in flight when the owner is gone. */
const ORPHAN_GRACE_MS = 10_000;

/** Longest life of connections after another process has taken this one's place. */
const RETIRE_MAX_MS = HOUR_MS;

interface Serving {
  edge: Edge;
  gateway: Gateway;
}

const send = (message: FromEdge): void => {
  if (process.connected) process.send?.(message, undefined, {}, () => {}); // "disconnect" tells that the owner is gone
};

/** Serves until the owner says stop or is gone. */
export function runEdge(): void {
  const asking = new Asking(send);
  const { ask } = asking;
  const routes = createRoutes(ask, systemClock);
  const callers = createCallers(ask, systemClock);
  const leases = createLeases({ ask, routes });
  /** Told to the owner with the counts. */
  const served: Served[] = [];
  let contexts: NamedContexts | null = null;
  const domains = new Map<string, true>();
  let serving: Serving | null = null;
  let renewOwn: (next: Credential) => void = () => {};
  let ending: Promise<void> | null = null;
  let rightsChanged: (change: RightsChange) => void = () => {};

  const tell = (): void => {
    const counts = leases.takeCounts(performance.now());
    if (counts.length > 0) send({ type: "open", counts });
    if (served.length > 0 && serving)
      send({ type: "served", requests: served.splice(0), totals: serving.gateway.totals() });
  };
  const telling = setInterval(tell, TELL_MS);

  async function start(given: EdgeStart): Promise<void> {
    const hasOwnFiles = given.config.tls_cert !== undefined;
    contexts = new NamedContexts({ own: given.settings, hasOwnFiles, now: () => systemClock.now() });
    for (const [name, credential] of given.certificates) learn(name, credential);
    for (const name of given.domains) domains.set(name, true);
    const gateway = createGateway({
      ...gatewayDeps(given, { ...callers, ...routes, ...leases }),
      onRightsChange(listener) {
        rightsChanged = listener;
        return () => {};
      },
      isCustomDomain: (host) => nearestIn(domains, host) !== undefined,
      meter: ({ workload: { uid }, durationMs, status, error, clientGone }) =>
        void served.push({ uid, durationMs, isError: isFailure({ status, error, clientGone }) }),
    });
    const edge = createEdge({
      ...{ gateway, clock: systemClock, names: given.names, config: given.config },
      ...(given.certificate && { certificate: renewedCertificate(given.certificate, renewal) }),
      contextOf: (host) => contexts?.of(host),
      challengeAnswer: async (token) => (await ask("httpChallenge", { token })).value,
      challengeCredential: async (host) => (await ask("tlsChallenge", { host })).value,
    });
    edge.serve(
      (req, res) => gateway.handOn(req, res, OWNER),
      () => null,
    );
    await edge.listen({ fd: PORT_FD });
    serving = { edge, gateway };
    send({ type: "serving" });
  }

  const renewal = (renew: typeof renewOwn): (() => void) => {
    renewOwn = renew;
    return () => {};
  };

  /** A certificate that cannot be used is one domain's trouble. */
  function learn(name: string, credential: Credential | null): void {
    contexts?.delete(name);
    try {
      if (credential !== null) contexts?.set(name, credential);
    } catch {
      // the server's own certificate is shown for this name
    }
  }

  async function retire(): Promise<void> {
    const late = setTimeout(() => void end(ORPHAN_GRACE_MS, false), RETIRE_MAX_MS);
    await serving?.edge.retire();
    clearTimeout(late);
    await end(0, false);
  }

  function end(graceMs: number, keepIdle: boolean): Promise<void> {
    const stop = async (): Promise<void> => {
      const sent: Promise<void>[] = [];
      if (keepIdle) serving?.gateway.giveUpIdle((socket) => void sent.push(sendIdle(socket)));
      await serving?.edge.stop(graceMs);
      await Promise.all(sent);
      clearInterval(telling);
      tell();
      if (serving) send({ type: "pong", id: 0, totals: serving.gateway.totals() });
      if (process.connected) process.disconnect();
      process.exit();
    };
    ending ??= stop();
    return ending;
  }

  process.on("message", (message: FromOwner) => {
    if (message.type === "answer" || message.type === "failure") asking.settle(message);
    else if (message.type === "changed") {
      routes.forget(message.uid);
      rightsChanged(message.uid === null ? "all" : { uid: message.uid });
    } else if (message.type === "addresses") {
      routes.forgetAddresses();
      rightsChanged("claims");
    } else if (message.type === "identities") {
      callers.forget();
      routes.forgetAddresses();
      rightsChanged("all");
    } else if (message.type === "domains") {
      for (const name of message.removed) domains.delete(name);
      for (const name of message.added) domains.set(name, true);
    } else if (message.type === "certificate") learn(message.name, message.credential);
    else if (message.type === "ownCertificate") renewOwn(message.credential);
    else if (message.type === "ping")
      send({ type: "pong", id: message.id, totals: serving?.gateway.totals() ?? NOTHING_COUNTED });
    else if (message.type === "retire") void retire();
    else if (message.type === "stop") void end(message.graceMs, message.keepIdle);
    else void start(message.start);
  });
  process.on("disconnect", () => {
    asking.end();
    void end(ORPHAN_GRACE_MS, false);
  });
  // A terminal and a service manager send these to every process of the server. The owner says when to stop.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  settleMemory();
  send({ type: "loaded" });
}

/** Resolves when the connection is the owner's. */
function sendIdle(socket: Socket): Promise<void> {
  detach(socket);
  return new Promise((resolve) => {
    if (!process.connected) return resolve();
    process.send?.({ type: "connection" } satisfies FromEdge, socket, {}, () => resolve());
  });
}

type Known = Pick<GatewayDeps, "authenticate" | "authorize" | "stillAllowed" | "resolve" | "ready" | "dial">;

function gatewayDeps(
  given: EdgeStart,
  { authenticate, authorize, stillAllowed, resolve, ready, dial }: Known,
): Omit<GatewayDeps, "meter" | "isCustomDomain"> {
  return {
    settings: { ...given.settings, proxies: proxiesOf(given.config) },
    clock: systemClock,
    log: logTo(given),
    registry: new Registry(),
    random: Math.random,
    onward: OWNER,
    peers: {
      dial: () => dialOwner(given.door),
      replay: () => Promise.reject(new Error("edge processes replay nothing")),
    },
    issuer: () => given.issuer,
    consoleOrigin: () => given.consoleOrigin,
    ...{ authenticate, authorize, stillAllowed, resolve, ready, dial },
    ownEndpoint: ({ kind, path }) => (kind === "sandbox" && isOwnSandboxPath(path) ? AT_OWNER : null),
    // The owner serves the requests that need these, so nothing calls them.
    mayReadLogs: () => false,
    rejoin: () => null,
    wake: () => Promise.reject(new Error("edge processes start nothing")),
    keepRequest: () => Promise.reject(new Error("edge processes keep no requests")),
  };
}

const AT_OWNER: OwnEndpoint = () => Promise.reject(new Error("the owner answers this"));

/** Lines go to the log of the owner. */
function logTo({ logsDebug }: EdgeStart): GatewayLog {
  const line =
    (level: "debug" | "warn" | "error") =>
    (fields: Record<string, unknown>, sentence: string): void =>
      send({
        type: "log",
        level,
        fields: { ...fields, ...(fields.err instanceof Error && { err: plain(fields.err) }) },
        sentence,
      });
  return { debug: logsDebug ? line("debug") : () => {}, warn: line("warn"), error: line("error") };
}

const plain = ({ name, message, stack }: Error): object => ({ type: name, message, stack });
