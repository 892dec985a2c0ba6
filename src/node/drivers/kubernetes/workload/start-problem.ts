/** Why a pod does not start, in the words of the cluster. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { ContainerStatus, Pod } from "../objects/answers.ts";
import { DAEMON_CONTAINER, USER_CONTAINER } from "../objects/pod-body.ts";
import { isPullSecretName } from "./pull-secret.ts";

/** Reasons of the kubelet that no waiting mends. */
const FINAL = new Set(["InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"]);
const PULLING = new Set(["ErrImagePull", "ImagePullBackOff"]);
const DENIED = /denied|unauthorized|forbidden|authorization/i;
/** What registries say about an image that is not there, or not for us. */
const NO_IMAGE = /not found|not exist|denied|unauthorized|forbidden|manifest unknown|invalid reference/i;

/** A registry that is away is back within this time, or the caller is told. */
const PULL_WAIT_MS = 2 * 60_000;
/** A kubelet that has not seen the credentials yet tries again after ten seconds, with them. */
const SECRET_WAIT_MS = 30_000;
/** Machines are added to a cluster in minutes. */
const ROOM_WAIT_MS = 5 * 60_000;

export interface StartProblem {
  problem: PlatformError;
  /** How long the cluster may take to mend it; 0: no waiting mends it. */
  waitMs: number;
  /** The cluster has no room for the pod. */
  needsRoom?: true;
}

/** Null for a pod that is on its way. */
export function startProblem({ spec, status }: Pod): StartProblem | null {
  const hasOwn = (spec.imagePullSecrets ?? []).some(({ name }) => isPullSecretName(name ?? ""));
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const each of all) {
    const found = problemOf(each, hasOwn);
    if (found) return found;
  }
  const unscheduled = status?.conditions?.find(({ type, status: is }) => type === "PodScheduled" && is === "False");
  if (!unscheduled) return null;
  const message = `The cluster has no room for the workload: ${unscheduled.message ?? unscheduled.reason ?? ""}`;
  return { problem: new PlatformError("unavailable", message), waitMs: ROOM_WAIT_MS, needsRoom: true };
}

/** `hasOwn`: the pod has credentials of its own for its image. */
function problemOf({ name, state }: ContainerStatus, hasOwn: boolean): StartProblem | null {
  const { waiting, terminated } = state ?? {};
  if (terminated && terminated.exitCode !== 0 && (name === DAEMON_CONTAINER || name === USER_CONTAINER)) {
    const said = terminated.message ?? terminated.reason ?? `it ended with ${terminated.exitCode}`;
    const problem =
      name === DAEMON_CONTAINER
        ? new PlatformError(
            "unavailable",
            `The daemon could not be put into the pod (${said}). Is the setting kube_image an image of Berth?`,
          )
        : new PlatformError(
            "bad_request",
            `The daemon does not run in the image (${said}). It needs the GNU C library, as in Debian, Ubuntu and Fedora.`,
          );
    return { problem, waitMs: 0 };
  }
  const { reason = "", message = "" } = waiting ?? {};
  const said = `${reason}: ${message}`;
  if (PULLING.has(reason ?? "")) {
    const isMissing = NO_IMAGE.test(message ?? "");
    const problem = new PlatformError(isMissing ? "bad_request" : "unavailable", `The image cannot be pulled: ${said}`);
    const mayCome = hasOwn && DENIED.test(message ?? "");
    return { problem, waitMs: mayCome ? SECRET_WAIT_MS : isMissing ? 0 : PULL_WAIT_MS };
  }
  if (!FINAL.has(reason ?? "")) return null;
  return { problem: new PlatformError("bad_request", `The pod cannot start: ${said}`), waitMs: 0 };
}
