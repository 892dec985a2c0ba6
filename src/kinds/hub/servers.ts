/**
 * MCP servers that come with the platform. A function selects one by an image name, although no image of that name
 * exists. Some servers run as a workload, with a program that the driver provides; the platform answers for the others
 * itself.
 */
import { serversOf } from "../../contract/tools/tool-rules.ts";
import type { Builtin } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { INTEGRATIONS } from "../integration/declarations.ts";
import type { Settings } from "../port.ts";
import { workloadSpec } from "../workload/spec.ts";

export interface HubServer {
  name: string;
  displayName: string;
  description: string;
  /** The integration that the server's connection must belong to. */
  integration?: string;
  runs: "platform" | HubProgram;
}

export interface HubProgram {
  builtin: Builtin;
  /** The server works on the function's first volume, mounted at this path. */
  inVolume?: string;
}

export const MEMORY_SERVER = "memory";

const OFFLINE: HubServer[] = [
  {
    name: "filesystem",
    displayName: "Filesystem",
    description: "Reads, writes and searches the files of a volume.",
    runs: { builtin: "mcp-files", inVolume: "" },
  },
  {
    name: "sqlite",
    displayName: "SQLite",
    description: "A SQL database of your own in a volume.",
    runs: { builtin: "mcp-sql", inVolume: "/data.sqlite" },
  },
  {
    name: "postgres",
    displayName: "PostgreSQL",
    description: "SQL on the PostgreSQL database that a connection names.",
    integration: "postgres",
    runs: { builtin: "mcp-sql" },
  },
  {
    name: MEMORY_SERVER,
    displayName: "Thread memory",
    description: "Remembers what was said in a thread, until nobody has spoken there for a while.",
    runs: "platform",
  },
];

const OF_INTEGRATIONS: HubServer[] = INTEGRATIONS.flatMap(({ name, title, tools }) =>
  tools
    ? [
        {
          name,
          displayName: title,
          description: `${title} with the account of a connection.`,
          integration: name,
          runs: "platform",
        },
      ]
    : [],
);

export const HUB_SERVERS: readonly HubServer[] = [...OFFLINE, ...OF_INTEGRATIONS];

type Names = Pick<Settings, "brand">;

export const hubImage = ({ name }: Pick<HubServer, "name">, { brand }: Names): string => `${brand}/mcp-${name}:latest`;

/** Finds the server by its image name, with the operator's brand or the word `service` as prefix. */
export function hubServerOf(image: unknown, { brand }: Names): HubServer | null {
  if (typeof image !== "string") return null;
  const [, word = "", name] = /^([a-z0-9]+)\/mcp-([a-z0-9-]+)(?::latest)?$/.exec(image) ?? [];
  if (word !== brand && word !== "service") return null;
  return HUB_SERVERS.find((server) => server.name === name) ?? null;
}

export const hubServerFor = (integration: string): HubServer | null =>
  HUB_SERVERS.find((server) => server.integration === integration) ?? null;

export const serverOf = ({ kind, spec }: Pick<Resource, "kind" | "spec">, names: Names): HubServer | null =>
  kind === "function" ? hubServerOf(workloadSpec(spec).runtime?.image, names) : null;

/** Whether the platform answers for the resource itself, so that no workload has to run. */
export const isServed = (resource: Pick<Resource, "kind" | "spec">, names: Names): boolean =>
  serverOf(resource, names)?.runs === "platform" || serversOf(resource) !== null;
