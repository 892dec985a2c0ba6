/**
 * Starts of workloads: a pod of the pool that gets its owner, or a pod of its own. Two servers may start one workload at
 * once. Pods of their own have a name that is the uid's, so that the second server finds the first one's; a server that
 * claims a pod of the pool looks for others with the workload's label afterwards. Of two servers the later sees the
 * earlier one's pod and gives its own back, so that at most one pod stays.
 */
import { PlatformError } from "../../../../contract/errors.ts";
import { CONTROL } from "../../../../contract/sandbox-wire.ts";
import type { Observed, WorkloadSpec } from "../../../workload.ts";
import { callControl } from "../../common/control.ts";
import { listening } from "../../common/readiness.ts";
import type { KubeClient } from "../client/kube-client.ts";
import { isRefusal, KubeRefusal } from "../client/refusal.ts";
import { type Pod, podSchema } from "../objects/answers.ts";
import { ANNOTATION, hostWord, ownLabels, podName } from "../objects/names.ts";
import { type PodGround, podBody } from "../objects/pod-body.ts";
import type { Claimed, PodPool } from "../pool/pod-pool.ts";
import { poolKindOf } from "../pool/pool-kind.ts";
import { claimOf, configOf, configSecret } from "./daemon.ts";
import { END_WAIT_MS, type Fleet, type Found, START_WAIT_MS } from "./fleet.ts";
import { endpointOf, hasEnded, isBeingClaimed, isRunning } from "./observed.ts";
import { newId, type Order, recordOf } from "./order.ts";
import { pullSecret, pullSecretName } from "./pull-secret.ts";
import { recordIn } from "./record.ts";
import { startProblem } from "./start-problem.ts";
import type { Tokens } from "./tokens.ts";

export interface StartsOptions {
  client: KubeClient;
  fleet: Fleet;
  pool: PodPool;
  namespace: string;
  node: string;
  ground: PodGround;
  tokens: Tokens;
  /** Where a new workload finds a server. */
  doors(): Promise<{ host: string; port: number }>;
}

/** A server hands a claimed pod over in a moment; after this long it is gone. */
const CLAIM_WAIT_MS = 5_000;
/** As much as a Secret may have: the larger configuration is refused there. */
const CLAIM_BYTES_MAX = 1_000_000;

export class Starts {
  readonly #options: StartsOptions;
  readonly #path: string;

  constructor(options: StartsOptions) {
    this.#options = options;
    this.#path = `/api/v1/namespaces/${options.namespace}/pods`;
  }

  async start(order: Order, signal?: AbortSignal): Promise<Observed> {
    try {
      const warm = await this.#warm(order, signal);
      for (let started = warm; ; started = await this.#elsewhere(order.spec.uid, signal)) {
        if (started) return started;
        const cold = await this.#cold(order, signal);
        if (cold) return cold;
      }
    } catch (error) {
      throw error instanceof KubeRefusal ? refused(error) : error;
    }
  }

  /** Null: the pool has no such pod, or another server starts the workload, too. */
  async #warm(order: Order, signal?: AbortSignal): Promise<Observed | null> {
    const { pool, ground, fleet, tokens } = this.#options;
    const { spec } = order;
    const kind = poolKindOf(order, ground);
    const claimed = kind && (await pool.claim(kind, spec));
    if (!claimed) return null;
    try {
      signal?.throwIfAborted();
      const claim = claimOf(spec, claimed.record, { tokens, doors: await this.#options.doors(), ownUser: false });
      if (Buffer.byteLength(JSON.stringify(claim)) > CLAIM_BYTES_MAX) return await this.#giveBack(claimed);
      const [isAlone] = await Promise.all([
        this.#isAlone(claimed),
        callControl(endpointOf(claimed.pod, claimed.record, this.#options), CONTROL.claim, claim),
      ]);
      if (!isAlone) return await this.#giveBack(claimed);
      const body = { metadata: { annotations: { [ANNOTATION.claim]: null } } };
      const path = `${this.#path}/${claimed.pod.metadata.name}`;
      const pod = await this.#options.client.json(podSchema, "PATCH", path, {
        body,
        type: "application/merge-patch+json",
      });
      signal?.throwIfAborted();
      return fleet.observed({ pod, record: claimed.record });
    } catch (error) {
      await this.#giveBack(claimed);
      if (signal?.aborted) throw error;
      return null;
    }
  }

  /** Nothing of the workload has run in the pod, and nobody else gets it. */
  async #giveBack({ pod }: Claimed): Promise<null> {
    await this.#options.fleet.delete(pod, 0);
    return null;
  }

  async #isAlone({ pod, record }: Found): Promise<boolean> {
    const all = await this.#options.fleet.labelled(record.uid);
    return all.every((each) => each.pod.metadata.uid === pod.metadata.uid);
  }

  /** The workload as another server has claimed it; waits for a claim that goes on, and ends one whose server is gone. */
  async #elsewhere(uid: string, signal?: AbortSignal): Promise<Observed | null> {
    const { fleet } = this.#options;
    const until = performance.now() + CLAIM_WAIT_MS;
    for (;;) {
      signal?.throwIfAborted();
      const changed = fleet.change(uid, signal);
      const claimed = (await fleet.labelled(uid)).filter(({ record }) => record.born !== undefined);
      const [found] = claimed;
      if (!found) return null;
      if (found.pod.metadata.deletionTimestamp) await fleet.gone(uid, found.pod, END_WAIT_MS, signal);
      else if (!isBeingClaimed(found.pod) && claimed.length === 1) {
        const observed = fleet.observed(found);
        if (observed) return observed;
        await fleet.delete(found.pod, 0); // a sandbox whose pod has ended has lost its files
      } else if (performance.now() > until) for (const each of claimed) await fleet.delete(each.pod, 0);
      else await changed;
    }
  }

  /** Finds the pod that an earlier try made, where there is one: the name is the uid's. Null: another server has claimed a pod. */
  async #cold(order: Order, signal?: AbortSignal): Promise<Observed | null> {
    const { spec } = order;
    let pod: Pod | null = null;
    try {
      const { found, made } = await this.#make(order, signal);
      pod = found.pod;
      if (!(await this.#isAlone(found))) {
        if (made) await this.#options.fleet.delete(pod, 0);
        return null;
      }
      return await this.#ready(spec, pod, signal);
    } catch (error) {
      await this.#forget(spec.uid, pod?.metadata.uid ?? null);
      throw error;
    }
  }

  async #make(order: Order, signal?: AbortSignal): Promise<{ found: Found; made: boolean }> {
    const { client, fleet, ground, namespace, node, tokens } = this.#options;
    const { spec, image, ownUser, claims } = order;
    const record = recordOf(spec, newId());
    const name = podName(ground.instance, spec.uid);
    const doors = await this.#options.doors();
    for (;;) {
      const own = `${name}-${record.id}`;
      const body = podBody(ground, {
        ...{ name, image, ownUser, claims, host: hostWord(spec.name), secret: own, labels: ownLabels(spec) },
        ...{ limits: spec.limits, storageMb: spec.storageMb, workDir: spec.workDir },
        annotations: { [ANNOTATION.record]: JSON.stringify(record), [ANNOTATION.logNode]: node },
        isTenantImage: spec.pull !== undefined,
        pullSecret: spec.pull?.credentials && pullSecretName(own),
      });
      const { object: pod, made } = await client.create(podSchema, this.#path, body, { signal });
      const there = made ? record : recordIn(pod);
      if (there?.uid !== spec.uid) throw new PlatformError("conflict", `The pod ${name} is none of Berth's.`);
      if (pod.metadata.deletionTimestamp) {
        await fleet.gone(spec.uid, pod, END_WAIT_MS, signal);
        continue;
      }
      if (ground.userNamespaces && pod.spec.hostUsers !== false)
        throw new PlatformError("unprocessable", "This cluster has no user namespaces (it ignores hostUsers).");
      const secret = `${name}-${there.id}`;
      const config = configSecret(ground.instance, secret, pod, configOf(spec, there, { tokens, doors, ownUser }));
      // The kubelet waits for the configuration, which is a volume, and not for credentials: these come first.
      for (const each of [...pullSecrets(spec, ground, secret, pod), config])
        await client.put(`/api/v1/namespaces/${namespace}/secrets`, each, { signal });
      return { found: { pod, record: there }, made };
    }
  }

  /** Waits until the daemon answers, or until a command has ended. */
  async #ready(spec: WorkloadSpec, { metadata }: Pod, signal?: AbortSignal): Promise<Observed> {
    const { fleet, pool } = this.#options;
    const until = performance.now() + START_WAIT_MS;
    let troubleSince: number | null = null;
    for (;;) {
      signal?.throwIfAborted();
      const changed = fleet.change(spec.uid, signal);
      const found = await fleet.find(spec.uid);
      if (!found || found.pod.metadata.uid !== metadata.uid || found.pod.metadata.deletionTimestamp)
        throw new PlatformError("unavailable", "The workload's pod was removed while it started. Try again.");
      const observed = fleet.observed(found);
      if (hasEnded(found.pod)) return await this.#endedEarly(found, observed);
      if (observed && observed.endpoint.kind === "tcp" && observed.endpoint.host !== "") {
        const enough = new AbortController();
        const ended = fleet.waitExit(spec.uid, { signal: enough.signal });
        try {
          if (await listening(observed.endpoint, ended, signal)) return observed;
        } finally {
          enough.abort();
          await ended.catch(() => {});
        }
        continue;
      }
      const now = performance.now();
      const trouble = startProblem(found.pod);
      troubleSince = trouble ? (troubleSince ?? now) : null;
      if (trouble?.needsRoom) await pool.giveWay();
      if (trouble && now >= (troubleSince ?? now) + trouble.waitMs) throw trouble.problem;
      if (now > until) throw new PlatformError("unavailable", "The workload's pod did not start in time. Try again.");
      await changed;
    }
  }

  /** A short command may end before its daemon was seen. */
  async #endedEarly(found: Found, observed: Observed | null): Promise<Observed> {
    const { reason, message } = found.pod.status ?? {};
    if (observed?.exitCode !== undefined) return observed;
    const said = reason ? `${reason}: ${message ?? ""}` : await this.#options.fleet.lastWords(found);
    throw new PlatformError("internal", `The workload's start failed: ${said}`);
  }

  /** Removes an unfinished start; `podUid` null: the pod of this start may be there all the same. */
  async #forget(uid: string, podUid: string | null): Promise<void> {
    const { fleet } = this.#options;
    const found = await fleet.find(uid).catch(() => null);
    if (!found || (podUid !== null && found.pod.metadata.uid !== podUid)) return;
    await fleet.delete(found.pod, isRunning(found.pod) ? 1 : 0);
    await fleet.gone(uid, found.pod, END_WAIT_MS);
  }
}

const pullSecrets = ({ pull }: WorkloadSpec, { instance }: PodGround, secret: string, pod: Pod) =>
  pull?.credentials ? [pullSecret(instance, pullSecretName(secret), pod, pull.credentials)] : [];

function refused(error: KubeRefusal): PlatformError {
  const code = isRefusal(error, 400, 422) ? "unprocessable" : "unavailable";
  return new PlatformError(code, `Kubernetes refuses the workload: ${error.message}`, { cause: error });
}
