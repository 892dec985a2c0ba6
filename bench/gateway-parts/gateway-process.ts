/**
 * The gateway in a process of its own, with one authenticated agent. Arguments: upstream port, then "node" for no lane,
 * or "tls" and the folder of cert.pem and key.pem.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { Registry } from "prom-client";
import type { Workload } from "../../src/gateway/deps.ts";
import { createGateway } from "../../src/gateway/gateway.ts";
import { clientsMaxOf, DEFAULT_LIMITS, openMaxOf } from "../../src/gateway/limits.ts";
import { attachGateway, SERVER_OPTIONS } from "../../src/http/attach.ts";
import { asHttp, createTls } from "../../src/http/tls/tls-server.ts";
import { NO_PROXIES } from "../../src/lib/network/proxies.ts";
import { CHURN_MS } from "./subject.ts";

const [upstream, form = "lane", folder = ""] = [Number(process.argv[2]), ...process.argv.slice(3)];
const principal = { id: "user-1", type: "user", method: "api_key" };
const keys = new Map([[digest("bench-key"), principal]]);
const agent: Workload = {
  kind: "agent",
  uid: "agent-1",
  workspace: "bench",
  name: "agent",
  public: false,
  enabled: true,
  revisions: { active: "1" },
  door: 8080,
  triggers: [],
  preview: null,
  elsewhere: null,
};

/** Exchanged on demand: a deployment gives a workload a new revision on a new instance. */
let route = agent;
let changes = 1;
let churning: NodeJS.Timeout | undefined;

function exchangeRoute(): void {
  changes += 1;
  route = { ...agent, revisions: { active: String(changes) } };
}

function digest(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}

const gateway = createGateway({
  settings: {
    brand: "berth",
    proxies: NO_PROXIES,
    pathPages: "sandboxed",
    isLoopback: false,
    docsUrl: "/docs/gateway",
    // More than the default: one caller opens thousands of idle connections.
    limits: { ...DEFAULT_LIMITS, openMax: openMaxOf(16_384), clientsMax: clientsMaxOf(16_384) },
  },
  clock: { now: Date.now },
  log: { debug() {}, warn() {}, error: console.error },
  registry: new Registry(),
  random: Math.random,
  isCustomDomain: () => false,
  authenticate: (token) => keys.get(digest(token)) ?? null,
  authorize: (_, { workspace }) => workspace === "bench",
  stillAllowed: async () => true,
  mayReadLogs: () => true,
  issuer: () => "http://127.0.0.1",
  resolve: (target) => (target.by === "name" && target.name === "agent" ? route : null),
  ready: () => ({ key: `agent-1/${changes}`, release() {} }),
  rejoin: () => null,
  wake: () => Promise.reject(new Error("always ready")),
  dial: () =>
    new Promise<Socket>((resolve, reject) => {
      const socket = connect({ port: upstream, host: "127.0.0.1", noDelay: true });
      socket.once("connect", () => resolve(socket)).once("error", reject);
    }),
  keepRequest: async () => false,
  meter() {},
});
function createFront(): Server {
  if (form !== "tls") return createServer(SERVER_OPTIONS);
  const [certificate = "", key = ""] = ["cert.pem", "key.pem"].map((name) => readFileSync(`${folder}/${name}`, "utf8"));
  return asHttp(createTls({ fallback: { certificate, key }, plain: (socket) => void socket.destroy() }));
}

const server = createFront();
attachGateway(server, gateway, { request: (_, res) => res.end() }, { fastLane: form !== "node" });
process.on("message", (word) => {
  if (word === "calm") clearInterval(churning);
  if (word === "churn") churning = setInterval(exchangeRoute, CHURN_MS);
  if (word !== "heap") return;
  globalThis.gc?.();
  process.send?.({ heapMb: Math.round((process.memoryUsage().heapUsed / 2 ** 20) * 100) / 100 });
});
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
