/** The objects of a test's Kubernetes API server: versions, history for watches, owners. */
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";

export interface KubeObject {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    resourceVersion: string;
    generation?: number;
    creationTimestamp: string;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: { uid: string }[];
  };
  [field: string]: unknown;
}

export interface KubeEvent {
  version: number;
  resource: string;
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: KubeObject;
}

export class KubeStore {
  readonly #objects = new Map<string, KubeObject>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #history: KubeEvent[] = [];
  #version = 100;
  #oldest = 0;

  get version(): number {
    return this.#version;
  }

  get(resource: string, namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(key(resource, namespace, name));
  }

  list(resource: string, namespace: string): KubeObject[] {
    return [...this.#objects].filter(([at]) => at.startsWith(key(resource, namespace, ""))).map(([, object]) => object);
  }

  add(
    resource: string,
    object: Omit<KubeObject, "metadata"> & { metadata: Partial<KubeObject["metadata"]> },
  ): KubeObject {
    const creationTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
    const made = {
      ...object,
      metadata: { ...object.metadata, uid: randomUUID(), creationTimestamp, resourceVersion: "" },
    } as KubeObject;
    this.#write(resource, "ADDED", made);
    this.#collect();
    return made;
  }

  replace(resource: string, object: KubeObject): KubeObject {
    const made = structuredClone(object);
    this.#write(resource, "MODIFIED", made);
    return made;
  }

  remove(resource: string, { metadata }: KubeObject): void {
    const { namespace, name, uid } = metadata;
    const found = this.get(resource, namespace, name);
    if (found?.metadata.uid !== uid) return;
    this.#objects.delete(key(resource, namespace, name));
    this.#tell({ version: ++this.#version, resource, type: "DELETED", object: structuredClone(found) });
    this.#collect();
  }

  /** Forgets all changes so far: a watch from before is refused with 410. */
  compact(): void {
    this.#oldest = this.#version;
    this.#history = [];
  }

  /** Null: that version is forgotten. */
  since(version: number, resource: string): KubeEvent[] | null {
    if (version < this.#oldest) return null;
    return this.#history.filter((event) => event.version > version && event.resource === resource);
  }

  onEvent(listener: (event: KubeEvent) => void): () => void {
    this.#events.on("event", listener);
    return () => this.#events.off("event", listener);
  }

  #write(resource: string, type: KubeEvent["type"], object: KubeObject): void {
    this.#version += 1;
    object.metadata.resourceVersion = String(this.#version);
    this.#objects.set(key(resource, object.metadata.namespace, object.metadata.name), object);
    this.#tell({ version: this.#version, resource, type, object });
  }

  #tell(event: KubeEvent): void {
    event.object = { ...event.object, metadata: { ...event.object.metadata, resourceVersion: String(event.version) } };
    this.#history.push(event);
    this.#events.emit("event", event);
  }

  /** Objects whose owner is gone go too. */
  #collect(): void {
    const uids = new Set([...this.#objects.values()].map(({ metadata }) => metadata.uid));
    for (const [at, object] of this.#objects) {
      const owners = object.metadata.ownerReferences ?? [];
      if (owners.length > 0 && owners.every(({ uid }) => !uids.has(uid))) this.remove(at.split("/")[0] ?? "", object);
    }
  }
}

const key = (resource: string, namespace: string, name: string): string => `${resource}/${namespace}/${name}`;
