import { knowsImage } from "../image/resolve.ts";
import { type Implementation, implement } from "../port.ts";
import { mcpHubList, sandboxHubList } from "./operations.ts";
import { HUB_SERVERS, hubImage } from "./servers.ts";

const MEMORY_DEFAULT_MB = 4096;

/** Descriptions of sandbox images. The list shows only those that the driver has. */
const SANDBOX_IMAGES = [
  {
    name: "base-image",
    displayName: "Base image",
    description: "The programs of the machine that the server runs on, read-only, with a private place to write.",
  },
  { name: "node", displayName: "Node.js", description: "The base image by the name that Node.js projects look for." },
  {
    name: "ts-app",
    displayName: "TypeScript",
    description: "The base image by the name that TypeScript apps look for.",
  },
  { name: "py-app", displayName: "Python", description: "The base image by the name that Python apps look for." },
];

export const hubHandlers: readonly Implementation[] = [
  implement(sandboxHubList, async (_call, { settings, here }) => {
    const known = SANDBOX_IMAGES.map((entry) => ({ ...entry, image: `${settings.brand}/${entry.name}:latest` }));
    const there = await Promise.all(known.map(({ image }) => knowsImage(here.driver, image)));
    return known
      .filter((_, index) => there[index])
      .map((entry) => ({
        ...entry,
        memory: MEMORY_DEFAULT_MB,
        ports: [],
        coming_soon: false,
        enterprise: false,
        hidden: false,
      }));
  }),

  implement(mcpHubList, async (_call, { settings }) =>
    HUB_SERVERS.map(({ runs: _runs, ...server }) => ({
      ...server,
      image: hubImage(server, settings),
      transport: "http-stream",
      coming_soon: false,
      enterprise: false,
      hidden: false,
    })),
  ),
];
