/** Why a pod does not start, in the words of the cluster. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { ContainerStatus, Pod } from "../objects/answers.ts";

/** Reasons of the kubelet that no waiting mends. */
const FINAL = new Set(["InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"]);
const PULLING = new Set(["ErrImagePull", "ImagePullBackOff"]);
/** What registries say about an image that is not there, or not for us. */
const NO_IMAGE = /not found|not exist|denied|unauthorized|forbidden|manifest unknown|invalid reference/i;

export interface StartProblem {
  problem: PlatformError | null;
  isFinal: boolean;
}

export function startProblem({ status }: Pod): StartProblem {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const each of all) {
    const found = problemOf(each);
    if (found.problem) return found;
  }
  const unscheduled = status?.conditions?.find(({ type, status: is }) => type === "PodScheduled" && is === "False");
  if (!unscheduled) return { problem: null, isFinal: false };
  const message = `The cluster has no room for the workload: ${unscheduled.message ?? unscheduled.reason ?? ""}`;
  return { problem: new PlatformError("unavailable", message), isFinal: false };
}

function problemOf({ name, state }: ContainerStatus): StartProblem {
  const { waiting, terminated } = state ?? {};
  if (name === "daemon" && terminated && terminated.exitCode !== 0) {
    const said = terminated.message ?? terminated.reason ?? `it ended with ${terminated.exitCode}`;
    const message = `The daemon could not be put into the pod (${said}). Is the setting kube_image an image of Berth?`;
    return { problem: new PlatformError("unavailable", message), isFinal: true };
  }
  const { reason = "", message = "" } = waiting ?? {};
  const said = `${reason}: ${message}`;
  if (PULLING.has(reason ?? "")) {
    const isMissing = NO_IMAGE.test(message ?? "");
    const problem = new PlatformError(isMissing ? "bad_request" : "unavailable", `The image cannot be pulled: ${said}`);
    return { problem, isFinal: isMissing };
  }
  if (!FINAL.has(reason ?? "")) return { problem: null, isFinal: false };
  return { problem: new PlatformError("bad_request", `The pod cannot start: ${said}`), isFinal: true };
}
