/**
 * New limits for a running pod, without a restart. The API server accepts a resize before the kubelet has done it, and the
 * kubelet may put it off for any time. A resize here is done when the kubelet says so; one that is put off is taken back,
 * so that the pod's specification always tells the limits that hold.
 */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Resizing } from "../../../capabilities/resizing.ts";
import type { Limits, Observed } from "../../../workload.ts";
import { belowUse } from "../../common/below-use.ts";
import type { Serial } from "../../common/serial.ts";
import { checkLimits } from "../../common/spec-check.ts";
import type { KubeClient } from "../client/kube-client.ts";
import { KubeRefusal } from "../client/refusal.ts";
import { type Pod, podSchema, versionSchema } from "../objects/answers.ts";
import { CONTAINER, resourcesOf } from "../objects/pod-body.ts";
import { amountOf } from "../objects/quantity.ts";
import type { Fleet } from "./fleet.ts";

interface Parts {
  client: KubeClient;
  fleet: Fleet;
  serial: Serial;
  namespace: string;
}

/** The first version of Kubernetes whose API server has the subresource without a feature gate. */
const MINOR_MIN = 33;
/** A kubelet does a resize in a second or two. */
const RESIZE_WAIT_MS = 30_000;
const MB = 2 ** 20;

/** Whether the API server can resize pods. */
export async function canResize(client: KubeClient): Promise<boolean> {
  const { major, minor } = await client.json(versionSchema, "GET", "/version");
  return Number(major) > 1 || Number.parseInt(minor, 10) >= MINOR_MIN;
}

export class KubeResizing implements Resizing {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  resize(uid: string, limits: Limits): Promise<Observed> {
    const { fleet, serial } = this.#parts;
    return serial.run(uid, async () => {
      checkLimits(limits);
      const { pod, observed } = await fleet.living(uid);
      const { memoryBytes } = await fleet.stats(uid);
      if (memoryBytes > limits.memoryMb * MB) throw belowUse(limits, memoryBytes);
      const asked = await this.#write(pod, limits);
      const problem = await this.#done(uid, asked, limits);
      if (problem !== null) {
        await this.#write(pod, observed.limits);
        throw new PlatformError("conflict", problem);
      }
      return (await fleet.living(uid)).observed;
    });
  }

  async #write({ metadata }: Pod, limits: Limits): Promise<Pod> {
    const { client, namespace } = this.#parts;
    const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}/resize`;
    const body = { spec: { containers: [{ name: CONTAINER, resources: resourcesOf(limits) }] } };
    try {
      return await client.json(podSchema, "PATCH", path, { body, type: "application/strategic-merge-patch+json" });
    } catch (error) {
      if (!(error instanceof KubeRefusal)) throw error;
      throw new PlatformError("conflict", `Kubernetes does not change the limits: ${error.message}`, { cause: error });
    }
  }

  /** Null once the kubelet has done it, otherwise why it has not. */
  async #done(uid: string, asked: Pod, limits: Limits): Promise<string | null> {
    const { fleet } = this.#parts;
    const until = performance.now() + RESIZE_WAIT_MS;
    for (;;) {
      const changed = fleet.change(uid);
      const { pod } = await fleet.known(uid);
      if (pod.metadata.uid !== asked.metadata.uid) return "The workload was started anew meanwhile.";
      const pending = conditionOf(pod, "PodResizePending", asked);
      if (pending?.reason === "Infeasible")
        return `The machine of the pod cannot give these limits: ${pending.message ?? ""}`;
      if (!pending && !conditionOf(pod, "PodResizeInProgress", asked) && hasLimits(pod, limits)) return null;
      if (performance.now() > until)
        return pending
          ? `The machine of the pod has no room for these limits now: ${pending.message ?? ""}`
          : "The machine of the pod did not change the limits in time.";
      await changed;
    }
  }
}

/** A condition that the kubelet has set since the resize was asked for. */
function conditionOf({ status }: Pod, wanted: string, asked: Pod) {
  const { generation = 0 } = asked.metadata;
  return status?.conditions?.find(
    ({ type, status: is, observedGeneration }) =>
      type === wanted && is === "True" && (observedGeneration ?? generation) >= generation,
  );
}

/** The limits that the kubelet says the container has. */
function hasLimits({ status }: Pod, { memoryMb, cpus }: Limits): boolean {
  const wanted = resourcesOf({ memoryMb, cpus }).limits;
  const { limits } = status?.containerStatuses?.find(({ name }) => name === CONTAINER)?.resources ?? {};
  const isSame = (name: "cpu" | "memory"): boolean => amountOf(limits?.[name] ?? "") === amountOf(wanted[name]);
  return isSame("cpu") && isSame("memory");
}
