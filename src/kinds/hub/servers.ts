/**
 * MCP servers that come with the platform. Each has the name of an image, by which a function asks for it; there is no
 * image behind the name. Some run as a workload, with a program that the driver brings along; others are answered by the
 * platform itself and run nowhere.
 */
import type { Resource } from "../../store/resource.ts";
import { INTEGRATIONS } from "../integration/declarations.ts";
import type { Settings } from "../port.ts";

export interface HubServer {
  name: string;
  displayName: string;
  description: string;
  /** The service that its connection has to be to. */
  integration?: string;
}

const OF_INTEGRATIONS: HubServer[] = INTEGRATIONS.flatMap(({ name, title, tools }) =>
  tools
    ? [{ name, displayName: title, description: `${title} with the account of a connection.`, integration: name }]
    : [],
);

export const HUB_SERVERS: readonly HubServer[] = OF_INTEGRATIONS;

type Names = Pick<Settings, "brand">;

export const hubImage = ({ name }: HubServer, { brand }: Names): string => `${brand}/mcp-${name}:latest`;

/** The server that an image's name stands for; both brand words are understood. */
export function hubServerOf(image: unknown, { brand }: Names): HubServer | null {
  if (typeof image !== "string") return null;
  const [, word = "", name] = /^([a-z0-9]+)\/mcp-([a-z0-9-]+)(?::latest)?$/.exec(image) ?? [];
  if (word !== brand && word !== "service") return null;
  return HUB_SERVERS.find((server) => server.name === name) ?? null;
}

export const hubServerFor = (integration: string): HubServer | null =>
  HUB_SERVERS.find((server) => server.integration === integration) ?? null;

export const serverOf = ({ kind, spec }: Pick<Resource, "kind" | "spec">, names: Names): HubServer | null =>
  kind === "function" ? hubServerOf((spec.runtime as { image?: unknown } | undefined)?.image, names) : null;

/** Whether the platform itself answers for it, so that nothing has to run. */
export const isServed = (resource: Pick<Resource, "kind" | "spec">, names: Names): boolean =>
  serverOf(resource, names) !== null;
