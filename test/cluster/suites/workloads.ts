/** What suites do with workloads again and again. */
import assert from "node:assert/strict";
import type { Cluster } from "../world/cluster.ts";
import { until } from "../world/until.ts";
import { expectBody, type Installation, NAMESPACE } from "./installation.ts";

export interface WorkloadPod {
  metadata: { name: string; uid: string; deletionTimestamp?: string; annotations?: Record<string, string> };
  spec: { automountServiceAccountToken?: boolean; nodeName?: string };
  status: { phase: string; podIP?: string };
}

interface Resource {
  status: string;
  events?: { message?: string }[];
}

export class Workloads {
  readonly #cluster: () => Cluster;
  readonly #get: () => Installation;

  constructor(cluster: () => Cluster, get: () => Installation) {
    this.#cluster = cluster;
    this.#get = get;
  }

  async makeSandbox(name: string, spec: object = {}): Promise<void> {
    const body = { metadata: { name }, spec: { runtime: { memory: 256 }, ...spec } };
    await expectBody(this.#get().call("POST", "/v0/sandboxes", body));
    await this.deployed("sandboxes", name);
  }

  /** Waits until the resource is in service; a failure is told with its events. */
  async deployed(plural: string, name: string): Promise<void> {
    const seen = await until(`${plural}/${name} is deployed`, async () => {
      const { body } = await this.#get().call<Resource>("GET", `/v0/${plural}/${name}`);
      return (body.status === "DEPLOYED" || body.status === "FAILED") && body;
    });
    assert.equal(seen.status, "DEPLOYED", JSON.stringify(seen.events));
  }

  async status(plural: string, name: string): Promise<string> {
    return (await this.#get().call<Resource>("GET", `/v0/${plural}/${name}`)).body.status;
  }

  /** What a command in the sandbox wrote. */
  async run(sandbox: string, command: string): Promise<string> {
    const body = { command, waitForCompletion: true };
    const asked = this.#get().call<{ logs: string }>("POST", `/main/sandboxes/${sandbox}/process`, body);
    return (await expectBody(asked)).logs;
  }

  async remove(plural: string, name: string): Promise<void> {
    await expectBody(this.#get().call("DELETE", `/v0/${plural}/${name}`));
    await until(`no pod of ${plural}/${name} is left`, async () => (await this.pods()).length === 0);
  }

  /** Pods that have an owner. */
  pods(): Promise<WorkloadPod[]> {
    return this.#list<WorkloadPod>("pods", "workload", "!berth.pool");
  }

  /** Pods that wait for an owner and are ready for one. */
  async waiting(): Promise<WorkloadPod[]> {
    const all = await this.#list<WorkloadPod>("pods", "workload", "berth.pool");
    return all.filter(({ metadata }) => metadata.annotations?.["berth.ready"] === "yes");
  }

  claims(): Promise<object[]> {
    return this.#list("pvc", "volume");
  }

  async #list<T>(resource: string, role: string, ...more: string[]): Promise<T[]> {
    const labels = [`berth.role=${role}`, ...more].join();
    const args = ["get", resource, "-n", NAMESPACE, "-l", labels] as const;
    return (await this.#cluster().look<{ items: T[] }>(...args)).items;
  }
}
