/**
 * Volumes as PersistentVolumeClaims. A claim says in an annotation which workload has it; the API server's versions make
 * that a lock between servers. Whether a size holds is up to the storage class, so the size counts as a wish.
 */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Volume, VolumeSpec, Volumes } from "../../../capabilities/volumes.ts";
import type { Mount } from "../../../workload.ts";
import { checkId } from "../../common/spec-check.ts";
import type { KubeClient } from "../client/kube-client.ts";
import { claimSchema, type VolumeClaim } from "../objects/answers.ts";
import { ANNOTATION, claimName, labelsOf } from "../objects/names.ts";
import type { PodOrder } from "../objects/pod-body.ts";

export interface VolumesOptions {
  client: KubeClient;
  namespace: string;
  instance: string;
  storageClass?: string | undefined;
  /** Whether that workload is there, running or not. */
  isThere(uid: string): Promise<boolean>;
  /** Sends the files of a folder into the volume. */
  fill(volume: string, from: string): Promise<void>;
}

/** How often a claim is looked at that others change meanwhile. */
const ROUNDS_MAX = 20;

export class KubeVolumes implements Volumes {
  readonly #options: VolumesOptions;
  readonly #path: string;

  constructor(options: VolumesOptions) {
    this.#options = options;
    this.#path = `/api/v1/namespaces/${options.namespace}/persistentvolumeclaims`;
  }

  async create({ id, sizeMb, from }: VolumeSpec): Promise<Volume> {
    checkId(id);
    const { client, instance, storageClass } = this.#options;
    const annotations = {
      [ANNOTATION.volume]: id,
      [ANNOTATION.sizeMb]: String(sizeMb),
      ...(from === undefined ? {} : { [ANNOTATION.filled]: "no" }),
    };
    const body = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: claimName(instance, id), labels: labelsOf(instance, "volume"), annotations },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: `${Math.ceil(sizeMb)}Mi` } },
        ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
      },
    };
    const { object } = await client.create(claimSchema, this.#path, body);
    if (from !== undefined && object.metadata.annotations?.[ANNOTATION.filled] === "no") {
      await this.#options.fill(id, from);
      const filled = { metadata: { annotations: { [ANNOTATION.filled]: null } } };
      await client.edit(claimSchema, this.#pathOf(id), () => filled);
    }
    return volumeOf(object, id);
  }

  async observe(id: string): Promise<Volume | null> {
    const found = await this.#find(id);
    return found && volumeOf(found, id);
  }

  async destroy(id: string): Promise<void> {
    const found = await this.#find(id);
    if (!found) return;
    const user = userOf(found);
    if (user !== null && (await this.#options.isThere(user)))
      throw new PlatformError("conflict", `The volume is in use by ${user}.`);
    await this.#options.client.remove(this.#pathOf(id), { uid: found.metadata.uid }, 0);
  }

  /** The claims of a workload's mounts, which from now on are that workload's alone. */
  async hold(uid: string, mounts: readonly Mount[]): Promise<PodOrder["claims"]> {
    const claims: PodOrder["claims"] = [];
    for (const { source, path, readOnly = false } of mounts) {
      if (!("volume" in source)) throw new PlatformError("unprocessable", "Driver kubernetes has no drives.");
      await this.#take(source.volume, uid);
      claims.push({ claim: claimName(this.#options.instance, source.volume), path, readOnly });
    }
    return claims;
  }

  async release(uid: string, mounts: readonly Mount[]): Promise<void> {
    for (const { source } of mounts) {
      if (!("volume" in source)) continue;
      await this.#options.client.edit(claimSchema, this.#pathOf(source.volume), (now) =>
        userOf(now) === uid ? { metadata: { annotations: { [ANNOTATION.user]: null } } } : null,
      );
    }
  }

  async #take(volume: string, uid: string): Promise<void> {
    const { client, isThere } = this.#options;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const found = await this.#find(volume);
      if (!found) throw new PlatformError("bad_request", `There is no volume ${volume}.`);
      const user = userOf(found);
      if (user === uid) return;
      if (user !== null && (await isThere(user)))
        throw new PlatformError("conflict", `The volume ${volume} is in use by another workload.`);
      const now = await client.edit(claimSchema, this.#pathOf(volume), (newest) =>
        userOf(newest) === user ? { metadata: { annotations: { [ANNOTATION.user]: uid } } } : null,
      );
      if (now && userOf(now) === uid) return;
    }
    throw new PlatformError("conflict", `The volume ${volume} is in use by another workload.`);
  }

  async #find(id: string): Promise<VolumeClaim | null> {
    const found = await this.#options.client.find(claimSchema, this.#pathOf(id));
    return found?.metadata.annotations?.[ANNOTATION.volume] === id && !found.metadata.deletionTimestamp ? found : null;
  }

  #pathOf(id: string): string {
    return `${this.#path}/${claimName(this.#options.instance, id)}`;
  }
}

const userOf = ({ metadata }: VolumeClaim): string | null => metadata.annotations?.[ANNOTATION.user] ?? null;

/** The cluster does not tell how much of a claim is in use. */
const volumeOf = ({ metadata }: VolumeClaim, id: string): Volume => ({
  id,
  sizeMb: Number(metadata.annotations?.[ANNOTATION.sizeMb] ?? 0),
  usedBytes: null,
  sized: false,
});
