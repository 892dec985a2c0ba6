/** What the API server checks before it keeps an object. */
import type { KubeObject } from "./store.ts";

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const HOST = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const LABEL_KEY = /^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const SECRET_BYTES_MAX = 1024 ** 2;

interface Container {
  image?: string;
  command?: string[];
  volumeMounts?: { name: string; mountPath: string }[];
  env?: { name: string }[];
}

interface PodSpec {
  hostname?: string;
  containers?: Container[];
  initContainers?: Container[];
  volumes?: { name: string }[];
}

/** Null: the object is accepted. */
export function invalid(resource: string, object: KubeObject): string | null {
  const { name, labels = {}, annotations = {} } = object.metadata;
  if (!NAME.test(name) || name.length > 253) return `metadata.name: Invalid value: "${name}"`;
  for (const [label, value] of Object.entries(labels))
    if (!LABEL_KEY.test(label) || !LABEL_VALUE.test(value))
      return `metadata.labels: Invalid value: "${label}=${value}"`;
  for (const [key, value] of Object.entries(annotations))
    if (!LABEL_KEY.test(key) || typeof value !== "string") return `metadata.annotations: Invalid value: "${key}"`;
  if (resource === "secrets") {
    const data = Object.values((object.data ?? {}) as Record<string, string>);
    const bytes = data.reduce((sum, each) => sum + Buffer.from(each, "base64").length, 0);
    if (bytes > SECRET_BYTES_MAX) return `data: Too long: may not be more than ${SECRET_BYTES_MAX} bytes`;
  }
  return resource === "pods" ? invalidPod(object.spec as PodSpec) : null;
}

function invalidPod(spec: PodSpec): string | null {
  if (spec.hostname !== undefined && !HOST.test(spec.hostname))
    return `spec.hostname: Invalid value: "${spec.hostname}"`;
  const volumes = new Set((spec.volumes ?? []).map(({ name }) => name));
  for (const { image, volumeMounts = [], env = [] } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    if (!image?.trim()) return "spec.containers[0].image: Required value";
    for (const { name, mountPath } of volumeMounts) {
      if (!volumes.has(name)) return `spec.containers[0].volumeMounts: Not found: "${name}"`;
      if (mountPath.includes(":")) return `spec.containers[0].volumeMounts: Invalid value: "${mountPath}"`;
    }
    const paths = volumeMounts.map(({ mountPath }) => mountPath);
    if (new Set(paths).size < paths.length) return "spec.containers[0].volumeMounts: must be unique";
    if (env.some(({ name }) => !/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)))
      return "spec.containers[0].env: Invalid value";
  }
  return null;
}
