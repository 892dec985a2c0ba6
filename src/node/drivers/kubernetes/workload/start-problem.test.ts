import assert from "node:assert/strict";
import { test } from "node:test";
import { podSchema } from "../objects/answers.ts";
import { startProblem } from "./start-problem.ts";

const waiting = (reason: string, message: string) => ({
  containerStatuses: [{ name: "workload", state: { waiting: { reason, message } } }],
});

/** Status of a pod, the code that its creator is told, and whether the cluster may still mend it. */
const CASES: [what: string, status: object, code: string | null, waits: boolean, secrets?: string[]][] = [
  ["a pod on its way", waiting("ContainerCreating", ""), null, false],
  ["an image that is not there", waiting("ErrImagePull", "manifest unknown: not found"), "bad_request", false],
  ["an image that is not for it", waiting("ErrImagePull", "401 Unauthorized"), "bad_request", false],
  ["credentials that are on their way", waiting("ErrImagePull", "401 Unauthorized"), "bad_request", true, ["p-1-pull"]],
  ["a missing image with credentials", waiting("ErrImagePull", "not found"), "bad_request", false, ["p-1-pull"]],
  ["a registry that is away", waiting("ImagePullBackOff", "dial tcp: i/o timeout"), "unavailable", true],
  ["a name that is none", waiting("InvalidImageName", "couldn't parse"), "bad_request", false],
  [
    "a daemon that could not be copied",
    { initContainerStatuses: [{ name: "daemon", state: { terminated: { exitCode: 1 } } }] },
    "unavailable",
    false,
  ],
  [
    "an image without the C library of the daemon",
    { initContainerStatuses: [{ name: "user", state: { terminated: { exitCode: 128, reason: "StartError" } } }] },
    "bad_request",
    false,
  ],
  [
    "a cluster without room",
    { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes" }] },
    "unavailable",
    true,
  ],
];

for (const [what, status, code, waits, secrets = []] of CASES)
  test(`why a pod does not start: ${what}`, () => {
    const metadata = { name: "p", uid: "u", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
    const found = startProblem(
      podSchema.parse({
        metadata,
        spec: { containers: [], imagePullSecrets: secrets.map((name) => ({ name })) },
        status,
      }),
    );
    assert.deepEqual([found?.problem.code ?? null, (found?.waitMs ?? 0) > 0], [code, waits]);
  });
