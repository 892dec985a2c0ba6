/** The credentials with which the kubelet pulls the image of one workload. */
import { DOCKER_HUB } from "../../../../contract/image-reference.ts";
import type { ImagePull } from "../../../workload.ts";
import type { Pod } from "../objects/answers.ts";
import { labelsOf } from "../objects/names.ts";
import { secretBody } from "../objects/secret-body.ts";

/** The kubelet's key for Docker Hub. */
const DOCKER_HUB_KEY = "https://index.docker.io/v1/";

export const pullSecretName = (secret: string): string => `${secret}-pull`;

export const isPullSecretName = (name: string): boolean => name.endsWith("-pull");

export function pullSecret(
  instance: string,
  name: string,
  pod: Pod,
  { registry, repository, username, password }: NonNullable<ImagePull["credentials"]>,
) {
  // The kubelet offers credentials for every image below the key: only this repository is meant.
  const key = registry === DOCKER_HUB ? DOCKER_HUB_KEY : `${registry}/${repository}`;
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  const text = JSON.stringify({ auths: { [key]: { username, password, auth } } });
  const data = { ".dockerconfigjson": Buffer.from(text).toString("base64") };
  return secretBody({ type: "kubernetes.io/dockerconfigjson", name, labels: labelsOf(instance, "pull"), pod, data });
}
