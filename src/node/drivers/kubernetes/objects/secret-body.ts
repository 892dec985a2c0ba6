/** A Secret of one pod. The cluster removes it with the pod, also when no server is left. */
import type { Pod } from "./answers.ts";

export interface PodSecret {
  type: "Opaque" | "kubernetes.io/dockerconfigjson";
  name: string;
  labels: Record<string, string>;
  /** The owner. */
  pod: Pick<Pod, "metadata">;
  /** In base64. */
  data: Record<string, string>;
}

export const secretBody = ({ type, name, labels, pod, data }: PodSecret) => ({
  apiVersion: "v1",
  kind: "Secret",
  type,
  immutable: true,
  metadata: {
    name,
    labels,
    ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: pod.metadata.name, uid: pod.metadata.uid }],
  },
  data,
});
