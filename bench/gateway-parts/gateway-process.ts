/** The gateway in a process of its own, with one authenticated agent. Arguments: upstream port, "node" for no lane. */

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { Registry } from "prom-client";
import type { Workload } from "../../src/gateway/deps.ts";
import { createGateway } from "../../src/gateway/gateway.ts";
import { DEFAULT_LIMITS } from "../../src/gateway/limits.ts";
import { attachGateway, SERVER_OPTIONS } from "../../src/http/attach.ts";
import { NO_PROXIES } from "../../src/lib/network/proxies.ts";

const upstream = Number(process.argv[2]);
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
    limits: DEFAULT_LIMITS,
  },
  clock: { now: Date.now },
  log: { debug() {}, warn() {}, error: console.error },
  registry: new Registry(),
  random: Math.random,
  isCustomDomain: () => false,
  authenticate: (token) => keys.get(digest(token)) ?? null,
  authorize: (_, { workspace }) => workspace === "bench",
  mayReadLogs: () => true,
  issuer: () => "http://127.0.0.1",
  resolve: (target) => (target.by === "name" && target.name === "agent" ? agent : null),
  ready: () => ({ key: "agent-1/1", release() {} }),
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
const server = createServer(SERVER_OPTIONS);
attachGateway(server, gateway, { request: (_, res) => res.end() }, { fastLane: process.argv[3] !== "node" });
process.on("message", () => {
  globalThis.gc?.();
  process.send?.({ heapMb: Math.round((process.memoryUsage().heapUsed / 2 ** 20) * 10) / 10 });
});
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
