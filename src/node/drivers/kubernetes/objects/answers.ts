/** The parts of the API server's answers that this driver reads. */
import { z } from "zod";

const texts = z.record(z.string(), z.string()).nullish();

const metadata = z.object({
  name: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.number().optional(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().nullish(),
  labels: texts,
  annotations: texts,
});

const containerStatus = z.object({
  name: z.string(),
  /** What the container has; its specification says what it is to have. */
  resources: z.object({ limits: texts }).nullish(),
  state: z
    .object({
      waiting: z.object({ reason: z.string().nullish(), message: z.string().nullish() }).nullish(),
      running: z.object({ startedAt: z.string().nullish() }).nullish(),
      terminated: z
        .object({ exitCode: z.number(), reason: z.string().nullish(), message: z.string().nullish() })
        .nullish(),
    })
    .nullish(),
});
export type ContainerStatus = z.output<typeof containerStatus>;

export const podSchema = z.object({
  metadata,
  spec: z.object({
    hostUsers: z.boolean().nullish(),
    imagePullSecrets: z.array(z.object({ name: z.string().nullish() })).nullish(),
    containers: z.array(z.object({ name: z.string(), resources: z.object({ limits: texts }).nullish() })),
  }),
  status: z
    .object({
      phase: z.string().nullish(),
      reason: z.string().nullish(),
      message: z.string().nullish(),
      podIP: z.string().nullish(),
      conditions: z
        .array(
          z.object({
            type: z.string(),
            status: z.string(),
            reason: z.string().nullish(),
            message: z.string().nullish(),
            observedGeneration: z.number().nullish(),
          }),
        )
        .nullish(),
      initContainerStatuses: z.array(containerStatus).nullish(),
      containerStatuses: z.array(containerStatus).nullish(),
    })
    .nullish(),
});
export type Pod = z.output<typeof podSchema>;

export const versionSchema = z.object({ major: z.string(), minor: z.string() });

export const claimSchema = z.object({ metadata });
export type VolumeClaim = z.output<typeof claimSchema>;

export const keySchema = z.object({ data: z.object({ key: z.string() }) });

export const anySchema = z.looseObject({});
