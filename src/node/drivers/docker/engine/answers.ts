/** The parts of the engine's answers that this driver reads. */
import { z } from "zod";

const labels = z.record(z.string(), z.string()).nullish();

export const infoSchema = z.object({
  ID: z.string().nullish(),
  OSType: z.string(),
  DockerRootDir: z.string(),
  MemoryLimit: z.boolean().nullish(),
  CpuCfsQuota: z.boolean().nullish(),
  PidsLimit: z.boolean().nullish(),
  SecurityOptions: z.array(z.string()).nullish(),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
});
export type Info = z.infer<typeof infoSchema>;

export const containerSchema = z.object({
  Id: z.string(),
  Name: z.string(),
  Created: z.string(),
  Image: z.string(),
  State: z.object({
    Status: z.string(),
    Running: z.boolean(),
    Paused: z.boolean(),
    OOMKilled: z.boolean(),
    Pid: z.number(),
    ExitCode: z.number(),
    Error: z.string().nullish(),
  }),
  Config: z.object({ Labels: labels }),
  HostConfig: z.object({ Memory: z.number(), NanoCpus: z.number(), PidsLimit: z.number().nullish() }),
});
export type Container = z.infer<typeof containerSchema>;

export const createdSchema = z.object({ Id: z.string() });

export const containersSchema = z.array(
  z.object({ Id: z.string(), Image: z.string(), ImageID: z.string(), State: z.string(), Labels: labels }),
);

export const statsSchema = z.object({
  memory_stats: z.object({ usage: z.number().nullish(), stats: z.record(z.string(), z.number()).nullish() }),
  cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number().nullish() }) }),
  pids_stats: z.object({ current: z.number().nullish() }),
});

export const imageSchema = z.object({
  Id: z.string(),
  RepoTags: z.array(z.string()).nullish(),
  Created: z.string().nullish(),
  Size: z.number(),
  Architecture: z.string().nullish(),
  Config: z
    .object({
      User: z.string().nullish(),
      Env: z.array(z.string()).nullish(),
      Entrypoint: z.array(z.string()).nullish(),
      Cmd: z.array(z.string()).nullish(),
      WorkingDir: z.string().nullish(),
      Labels: labels,
    })
    .nullish(),
});
export type DockerImage = z.infer<typeof imageSchema>;

export const imagesSchema = z.array(
  z.object({
    Id: z.string(),
    RepoTags: z.array(z.string()).nullish(),
    Created: z.number(),
    Size: z.number(),
    Labels: labels,
  }),
);

export const volumeSchema = z.object({ Name: z.string(), Mountpoint: z.string(), Labels: labels });

export const volumesSchema = z.object({ Volumes: z.array(volumeSchema).nullish() });

export const diskUseSchema = z.object({
  Volumes: z.array(z.object({ Name: z.string(), UsageData: z.object({ Size: z.number() }).nullish() })).nullish(),
});
