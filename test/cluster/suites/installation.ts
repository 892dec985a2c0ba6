/** Berth in the cluster as the chart installs it: two servers on one PostgreSQL, with the rights of the chart's Role. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { promisify } from "node:util";
import { CHART } from "../../helm/renderings.ts";
import { createDatabase } from "../../postgres.ts";
import { PATH } from "../parts/folder.ts";
import { NODE_IP } from "../world/addresses.ts";
import { BERTH_IMAGE } from "../world/berth-image.ts";
import type { Cluster } from "../world/cluster.ts";
import { type ClusterPostgres, startClusterPostgres } from "../world/postgres.ts";
import { until } from "../world/until.ts";

export const API_KEY = "a-key-for-the-cluster";
export const NAMESPACE = "platform";
/** Where kubelets and clients reach the servers. */
export const PUBLIC_HOST = `${NODE_IP}:8080`;
export const PUBLIC_URL = `http://${PUBLIC_HOST}`;

export interface Answer<Body> {
  status: number;
  body: Body;
}

export interface Installation {
  postgres: ClusterPostgres;
  /** A request to the API through the service, which any ready server may take. */
  call<Body>(method: string, path: string, body?: unknown, headers?: object): Promise<Answer<Body>>;
  /** Listens at the public address and leads every connection to the same server, as uploads in parts need it. */
  openPublicAddress(): Promise<AsyncDisposable>;
  /** Names of the server pods that are ready. */
  servers(): Promise<string[]>;
  /** Replaces the servers as an upgrade does; resolves when all are new. */
  upgrade(): Promise<void>;
  stop(): Promise<void>;
}

interface PodList {
  items: {
    metadata: { name: string; deletionTimestamp?: string };
    status: { conditions?: { type: string; status: string }[] };
  }[];
}

export async function installBerth(cluster: Cluster): Promise<Installation> {
  const postgres = await startClusterPostgres();
  const url = new URL(await createDatabase(postgres.url));
  const database = new URL(postgres.podUrl);
  database.pathname = url.pathname;
  const values = join(cluster.dir, "values.json");
  writeFileSync(
    values,
    JSON.stringify({
      image: { ...BERTH_IMAGE, pullPolicy: "Never" },
      secrets: { apiKey: API_KEY },
      database: { url: database.href },
      publicUrl: PUBLIC_URL,
      settings: { BERTH_LOG_LEVEL: "info", BERTH_POOL_SIZE: "0", BERTH_STANDBY_AFTER: "600" },
    }),
  );
  const helm = async (...args: string[]): Promise<string> => {
    const env = { PATH, HOME: cluster.dir, KUBECONFIG: cluster.kubeconfig };
    return (await promisify(execFile)("helm", [...args, "--namespace", NAMESPACE], { env })).stdout;
  };
  await helm("install", "berth", CHART, "--values", values, "--create-namespace");
  const servers = async (): Promise<string[]> => {
    const selector = "app.kubernetes.io/component=server";
    const { items } = await cluster.look<PodList>("get", "pods", "-n", NAMESPACE, "-l", selector);
    return items
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .filter(({ status }) => status.conditions?.some((each) => each.type === "Ready" && each.status === "True"))
      .map(({ metadata }) => metadata.name);
  };
  await until("two servers are ready", async () => (await servers()).length === 2);
  const service = await cluster.look<{ spec: { clusterIP: string } }>("get", "service", "berth", "-n", NAMESPACE);
  await until("the service leads to them", async () => (await fetch(`http://${service.spec.clusterIP}/readyz`)).ok);
  const openPublicAddress = async (): Promise<AsyncDisposable> => {
    const [name = ""] = await servers();
    const { status } = await cluster.look<{ status: { podIP: string } }>("get", "pod", name, "-n", NAMESPACE);
    const gateway = createServer((client) => {
      const server = connect(8080, status.podIP);
      pipeline(client, server, client, () => {}); // either side may hang up
    });
    gateway.listen(8080, NODE_IP);
    await once(gateway, "listening");
    return {
      [Symbol.asyncDispose]: async () => {
        gateway.close();
      },
    };
  };
  return {
    ...{ postgres, servers, openPublicAddress },
    upgrade: async () => {
      const annotation = `podAnnotations.upgraded=at-${Date.now()}`;
      await helm("upgrade", "berth", CHART, "--values", values, "--set", annotation, "--wait", "--timeout", "10m");
    },
    call: async <Body>(method: string, path: string, body?: unknown, headers: object = {}) => {
      const answer = await fetch(`http://${service.spec.clusterIP}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${API_KEY}`,
          "content-type": "application/json",
          connection: "close",
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, body: (text === "" ? null : JSON.parse(text)) as Body };
    },
    stop: async () => {
      await postgres.stop();
    },
  };
}

/** The answer's body, when the status is as expected. */
export async function expectBody<Body>(asked: Promise<Answer<Body>>, status = 200): Promise<Body> {
  const answer = await asked;
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  return answer.body;
}
