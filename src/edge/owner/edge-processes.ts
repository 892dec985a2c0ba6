/**
 * The edge processes of a server: started together, replaced when one ends, told of every change that makes what they
 * remember untrue, and stopped before the server's own port.
 */
import type { Socket } from "node:net";
import { Counter, Gauge, type Registry } from "prom-client";
import type { GatewayLog } from "../../gateway/deps.ts";
import type { Directory } from "../../gateway/directory.ts";
import { type GatewayTotals, Sums } from "../../gateway/totals.ts";
import { backoffMs } from "../../lib/backoff.ts";
import type { Running } from "../../lib/lifecycle.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import type { EdgeStart, Served } from "../messages.ts";
import { type AnswersDeps, createAnswers } from "./answers.ts";
import { EdgeProcess } from "./edge-process.ts";

/** Time for requests in flight when the server stops. */
const DRAIN_MS = 10 * SECOND_MS;
/** A process that ends sooner after its start counts as one that fails to start. */
const STEADY_MS = 10 * SECOND_MS;
const AGAIN = { baseMs: 100, maxMs: 30 * SECOND_MS };
/** Failed starts in a row, while no process serves, after which the server accepts connections itself. */
const FAILURES_MAX = 5;
/** How often each process is asked for a sign of life, and the silence after which it is replaced. */
const PING_MS = SECOND_MS;
const SILENT_MAX_MS = 15 * SECOND_MS;
/** Longest wait for a process to confirm a change. A change reaches a process that is not stuck in a millisecond. */
const SETTLE_MAX_MS = 100;
/** Age of numbers that a reader of metrics may get: each of them is asked for by itself. */
const COUNTED_MS = 50;

/** Kinds that claim hosts and paths: when one of them changes, an address may lead elsewhere. */
const ADDRESSED: ReadonlySet<string> = new Set([
  ...["agent", "application", "function", "job"],
  ...["customdomain", "preview", "previewtoken"],
]);

export interface EdgeProcessesOptions extends AnswersDeps, Pick<Directory, "claim" | "customDomains"> {
  count: number;
  log: GatewayLog & { info(fields: object, sentence: string): void };
  registry: Registry;
  onChange(listener: (change: { topic: string; key: string }) => void): () => void;
  onIdentityChange(listener: () => void): () => void;
  /** Called for every request that a process has served. */
  onServed(request: Served): void;
  onCertificate(listener: (name: string, credential: Credential | null) => void): void;
}

/** What is known only when the port is open. */
export interface Port {
  fd: number;
  start(): EdgeStart;
  onOwnCertificate(listener: (credential: Credential) => void): void;
  /** The server accepts connections itself from now on. */
  takePort(): void;
  adopt(socket: Socket): void;
}

export interface EdgeProcesses extends Running {
  /** Resolves when the processes serve. */
  open(port: Port): Promise<void>;
  /** Replaces the processes one after another. Connections stay with the process that has them until they end. */
  restart(): Promise<void>;
  /** Resolves when every process has heard of the changes so far. Waits a moment at most. */
  settled(): Promise<void>;
  totals(): Promise<readonly GatewayTotals[]>;
  /** Idle connections go to `take` when the processes stop; requests in flight get `graceMs`. */
  hold(graceMs: number, take: (socket: Socket) => void): void;
  pids(): number[];
  /** Says that processes are missing; null when all serve. */
  shortage(): string | null;
}

export function createEdgeProcesses(options: EdgeProcessesOptions): EdgeProcesses {
  const { count, log, registry } = options;
  const answers = createAnswers(options);
  const processes = new Set<EdgeProcess>();
  const gone = new Sums();
  let era = 0;
  let failures = 0;
  let restarts = 0;
  let stopping = false;
  let ownerAccepts = false;
  let held: { graceMs: number; take(socket: Socket): void } | null = null;
  let refreshing: Promise<void> | null = null;
  let port: Port | null = null;
  let restarting: Promise<void> = Promise.resolve();
  /** Resolves when anybody accepts connections. */
  const accepting = Promise.withResolvers<void>();
  addMetrics(registry, { serving: () => serving().length, restarts: () => restarts });

  const serving = (): EdgeProcess[] => [...processes].filter((one) => one.isServing && !one.isRetiring);
  const remaining = (): EdgeProcess[] => [...processes].filter(({ isRetiring }) => !isRetiring);
  const unsubscribe = [
    options.onChange(({ topic, key }) => {
      era += 1;
      // A workload includes its policies, so a changed policy may change all of them.
      const kind = key.slice(0, key.indexOf("/"));
      const isAll = topic === "resync" || kind === "policy";
      for (const one of processes) {
        if (isAll || topic === "resource") one.changed(isAll ? null : key.slice(kind.length + 1));
        if (isAll || topic === "share" || (topic === "resource" && ADDRESSED.has(kind))) one.addressesChanged();
      }
    }),
    options.onIdentityChange(() => {
      era += 1;
      for (const one of processes) one.send({ type: "identities" });
    }),
  ];
  options.customDomains.onChange((change) => {
    for (const one of processes) one.send({ type: "domains", ...change });
  });
  options.onCertificate((name, credential) => {
    for (const one of processes) one.send({ type: "certificate", name, credential });
  });

  /** Resolves with the process when it serves, and with null when it has ended before. */
  function begin(at: Port): Promise<EdgeProcess | null> {
    const ready = Promise.withResolvers<EdgeProcess | null>();
    const one = new EdgeProcess({
      ...{ answers, fd: at.fd, claim: options.claim, era: () => era, start: at.start },
      onServed: options.onServed,
      onServing() {
        ready.resolve(one);
        accepting.resolve();
      },
      onLog: (level, fields, sentence) => log[level](fields, sentence),
      onConnection: (socket) => (held ? held.take(socket) : at.adopt(socket)),
    });
    processes.add(one);
    void one.ended.then((reason) => {
      processes.delete(one);
      gone.add(one.totals);
      ready.resolve(null);
      if (stopping || one.isRetiring) return;
      const livedMs = performance.now() - one.startedMs;
      log.error({ edge: one.pid, reason, livedMs }, "an edge process has ended; another takes its place");
      // While processes are exchanged there is one more of them.
      if (remaining().length < count) replace(at, livedMs);
    });
    return ready.promise;
  }

  function replace(at: Port, livedMs: number): void {
    failures = livedMs < STEADY_MS ? failures + 1 : 0;
    restarts += 1;
    if (failures >= FAILURES_MAX && serving().length === 0 && !ownerAccepts) {
      ownerAccepts = true;
      log.error({ failures }, "edge processes do not start; the server accepts connections itself");
      at.takePort();
      accepting.resolve();
    }
    const again = (): void => void (stopping || begin(at));
    if (failures <= 1) again();
    else setTimeout(again, backoffMs(failures, AGAIN)).unref();
  }

  const watch = setInterval(() => {
    const now = performance.now();
    for (const one of processes) {
      if (now - one.seenMs > SILENT_MAX_MS) one.kill();
      else void one.settled();
    }
  }, PING_MS).unref();

  async function settled(): Promise<void> {
    if (processes.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, SETTLE_MAX_MS);
    });
    await Promise.race([late, Promise.all([...processes].map((one) => one.settled()))]);
    clearTimeout(timer);
  }

  async function exchangeAll(): Promise<void> {
    if (port === null || stopping) return;
    for (const old of serving()) {
      const fresh = await begin(port);
      if (fresh === null) throw new Error("A new edge process did not start; the others serve on. See the log.");
      old.retire();
    }
    log.info({ pids: serving().map(({ pid }) => pid) }, "new edge processes serve the port");
  }

  return {
    async open(at) {
      port = at;
      at.onOwnCertificate((credential) => {
        for (const one of processes) one.send({ type: "ownCertificate", credential });
      });
      await Promise.all(Array.from({ length: count }, () => begin(at)));
      await accepting.promise;
      log.info({ pids: serving().map(({ pid }) => pid) }, "edge processes serve the port");
    },
    settled,
    async restart() {
      restarting = restarting.catch(() => {}).then(exchangeAll);
      await restarting;
    },
    async totals() {
      refreshing ??= settled().finally(() => {
        setTimeout(() => {
          refreshing = null;
        }, COUNTED_MS).unref();
      });
      await refreshing;
      return [gone.sum(), ...[...processes].map(({ totals }) => totals)];
    },
    hold(graceMs, take) {
      held = { graceMs, take };
    },
    pids: () => serving().flatMap(({ pid }) => pid ?? []),
    shortage() {
      const { length } = serving();
      return length >= count ? null : `${length} of ${count} edge processes serve the port.`;
    },
    async stop() {
      stopping = true;
      clearInterval(watch);
      const graceMs = held?.graceMs ?? DRAIN_MS;
      await Promise.all([...processes].map((one) => one.stop(graceMs, held !== null)));
      for (const end of unsubscribe) end();
    },
  };
}

function addMetrics(registry: Registry, read: { serving(): number; restarts(): number }): void {
  new Gauge({
    name: "berth_edge_processes",
    help: "Edge processes that serve the port",
    registers: [registry],
    collect() {
      this.set(read.serving());
    },
  });
  new Counter({
    name: "berth_edge_restarts_total",
    help: "Edge processes that ended by themselves and were replaced",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read.restarts());
    },
  });
}
