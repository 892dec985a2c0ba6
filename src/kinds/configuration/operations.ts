/** What this installation offers. One server is one region. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { GRADES } from "../../lib/grades.ts";

const named = z.object({ name: z.string(), displayName: z.string() });
/** How well workloads are isolated from the machine, as measured when the server started. */
const isolation = z.object({
  grade: z.enum([...GRADES, "unavailable"]).describe("What a workload gets unless it asks for more."),
  grades: z.array(z.enum(GRADES)).optional().describe("What a workload may ask for, strongest first."),
  missing: z.array(z.string()).describe("What the machine lacks for more, one sentence each."),
  seccomp: z.boolean().optional(),
  limits: z.array(z.string()).optional().describe("Which limits hold for a workload as a whole."),
  outbound: z.string().optional(),
  volumes: z.string().optional(),
  roots: z.string().optional().describe("Whether the root of a workload has a size: sized or unsized."),
});

const common = { method: "GET", tenancy: "caller", role: "member" } as const;

export const configurationGet = defineOperation({
  ...common,
  id: "configurationGet",
  path: "/configuration",
  summary: "Read what the platform offers, region by region",
  scope: "configurations:list",
  response: z.object({
    continents: z.array(named),
    countries: z.array(named),
    regions: z.array(
      z.object({
        name: z.string(),
        location: z.string(),
        continent: z.string(),
        country: z.string(),
        infoGeneration: z.string(),
        drivesAvailable: z.boolean(),
        egressAvailable: z.boolean(),
        proxyAvailable: z.boolean(),
        mk31Available: z.boolean(),
        isolation,
      }),
    ),
    detectedRegion: z.string(),
    privateLocations: z.array(z.object({ name: z.string() })),
  }),
});

export const locationList = defineOperation({
  ...common,
  id: "locationList",
  path: "/locations",
  summary: "List the places that workloads run in",
  scope: "locations:list",
  response: z.array(
    z.object({
      location: z.string(),
      region: z.string(),
      continent: z.string(),
      country: z.string(),
      status: z.string(),
      flavors: z.array(z.object({ name: z.string(), type: z.enum(["cpu", "gpu"]) })),
    }),
  ),
});

export const publicIpList = defineOperation({
  ...common,
  id: "publicIpList",
  path: "/publicIps",
  summary: "List the addresses that traffic of workloads may come from, by region",
  scope: "admin",
  query: z.object({ region: z.string().max(64).optional() }),
  response: z.record(
    z.string(),
    z.object({ description: z.string(), ipv4Cidrs: z.array(z.string()), ipv6Cidrs: z.array(z.string()) }),
  ),
});

export const configurationOperations = [configurationGet, locationList, publicIpList];
