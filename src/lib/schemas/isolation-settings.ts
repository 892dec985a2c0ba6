/** Settings of the isolation of workloads on the local driver. */
import { z } from "zod";
import { GRADES } from "../grades.ts";

export const isolationSettings = {
  isolation: {
    env: "BERTH_ISOLATION",
    schema: z.enum(GRADES).exclude(["none"]).optional(),
    about: "Weakest isolation grade of every workload: vm-like, mapped, contained or user; absent = what works here.",
  },
  runsc: {
    env: "BERTH_RUNSC",
    schema: z.string().min(1).optional(),
    about: "Path of gVisor's runsc, for isolation grade vm-like; absent = looked for where programs usually are.",
  },
} as const;
