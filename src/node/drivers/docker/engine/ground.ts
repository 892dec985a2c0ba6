/** What a Docker Engine offers: which isolation and which limits, and what is missing for more. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Probe } from "../../../driver.ts";
import type { Grade } from "../../../workload.ts";
import { type Info, infoSchema } from "./answers.ts";
import type { DockerClient } from "./docker-client.ts";

export interface Engine {
  /** The engine's own name for itself, kept through its restarts. */
  id: string;
  grade: Grade;
  probe: Probe;
}

/** Asks the engine about itself and refuses one that this driver cannot use. */
export async function examine(client: DockerClient, runtime: string | undefined): Promise<Engine> {
  const info = await client.json(infoSchema, "GET", "/info");
  const refuse = (reason: string): PlatformError =>
    new PlatformError("unavailable", `Docker at ${client.host.text} cannot run workloads: ${reason}`);
  if (info.OSType !== "linux") throw refuse(`its containers are for ${info.OSType}.`);
  if (hasOption(info, "userns"))
    throw refuse("it remaps users (userns-remap), and workloads could not write to the folder they share with Berth.");
  if (runtime !== undefined && info.Runtimes?.[runtime] === undefined)
    throw refuse(`it has no runtime '${runtime}'. It has ${Object.keys(info.Runtimes ?? {}).join(", ")}.`);
  const grade: Grade = hasOption(info, "rootless") ? "user" : "contained";
  const limits = limitsOf(info);
  const seccomp = hasOption(info, "seccomp");
  return {
    id: info.ID ?? client.host.text,
    grade,
    probe: {
      grade,
      grades: [grade],
      missing: [...missing(grade), ...(seccomp ? [] : ["This Docker filters no system calls (seccomp)."])],
      seccomp,
      limits,
      freezer: "cgroup",
      outbound: "proxy",
      volumes: "unsized",
      roots: "unsized",
    },
  };
}

const missing = (grade: Grade): string[] => [
  grade === "user"
    ? "Containers of a rootless Docker are processes of that Docker's user."
    : "Root inside a container is root on the machine, with few capabilities.",
  "Docker volumes have no enforced size.",
  "Workloads have no network of their own: outbound goes through the platform's proxy.",
];

/** Options look like "name=seccomp,profile=default". */
const hasOption = (info: Info, name: string): boolean =>
  (info.SecurityOptions ?? []).some((option) => option.split(",").includes(`name=${name}`));

const limitsOf = (info: Info): Probe["limits"] => [
  ...(info.MemoryLimit ? (["memory"] as const) : []),
  ...(info.CpuCfsQuota ? (["cpu"] as const) : []),
  ...(info.PidsLimit ? (["pids"] as const) : []),
];
